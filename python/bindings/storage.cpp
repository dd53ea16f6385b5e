#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings/argument.hpp"
#include "bindings/array.hpp"
#include "bindings/bindings.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/storage/file.hpp"
#include "waywiser/storage/mount.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

std::shared_ptr<Platform> no_gpus() {
  throw Error(ErrorKind::unavailable, "an array of a GPU: files are read into memory of the host");
}

using Parts = std::vector<std::pair<Bytes, nb::object>>;

FilePart read_part(Bytes offset, nb::handle array) { return {offset, output_region(array, no_gpus)}; }

// What a write only reads.
FilePart written_part(Bytes offset, nb::handle array) {
  const ConstRegion given = input_region(array, no_gpus);
  return {offset, {const_cast<std::byte*>(given.data), given.bytes, given.place}};
}

void read_parts(File& self, const Parts& parts) {
  std::vector<FilePart> wanted;
  for (const auto& [offset, array] : parts) wanted.push_back(read_part(offset, array));
  without_gil([&] { self.read(wanted); });
}

void write_parts(File& self, const Parts& parts) {
  std::vector<FilePart> given;
  for (const auto& [offset, array] : parts) given.push_back(written_part(offset, array));
  without_gil([&] { self.write(given); });
}

template <typename Call>
auto outside(Call call) {
  const nb::gil_scoped_release released;
  return call();
}

using WhyNot = std::optional<std::string>;

// Of every mechanism: its name, and why it cannot read this file, or write it.
std::vector<std::tuple<std::string, WhyNot, WhyNot>> mechanisms_for(const std::string& path) {
  const StorageFile file = StorageFile::for_reading(path);
  std::vector<std::tuple<std::string, WhyNot, WhyNot>> all;
  for (const StorageMechanism& each : storage_mechanisms())
    all.emplace_back(each.name, each.why_not(file, FileUse::read), each.why_not(file, FileUse::write));
  return all;
}

}  // namespace
}  // namespace waywiser

void bind_storage(nb::module_& m) {
  using namespace waywiser;
  nb::class_<FilePlan>(m, "FilePlan", "The rows of a plan about files, read once.")
      .def(nb::init<>())
      .def_static("of", [](const std::string& plan) { return FilePlan::of(plan); }, "plan"_a);
  nb::class_<File>(m, "File", "See waywiser.File.")
      .def_static(
          "open",
          [](const std::string& path, const FilePlan& plan, const std::string& way) {
            return outside([&] { return File::open(path, {plan, way}); });
          },
          "path"_a, "plan"_a, "way"_a)
      .def_static(
          "replace",
          [](const std::string& path, const FilePlan& plan, const std::string& way) {
            return outside([&] { return File::replace(path, {plan, way}); });
          },
          "path"_a, "plan"_a, "way"_a)
      .def("size", &File::size)
      .def("read", read_parts, "parts"_a, "Parts: offset and array of each.")
      .def("write", write_parts, "parts"_a)
      .def("close", [](File& self) { without_gil([&] { self.close(); }); })
      .def("discard", &File::discard)
      .def("way", &File::way, "offset"_a, "bytes"_a)
      .def("drop_cache", [](const File& self) { return outside([&] { return self.drop_cache(); }); })
      .def("synchronize", [](const File& self) { outside([&] { self.synchronize(); }); });
  m.def(
      "storage_of", [](const std::string& path) { return storage_of(StorageFile::for_reading(path)); }, "path"_a,
      "How plans call the file system of a file: \"storage ext4 /\".");
  m.def("storage_mechanisms", mechanisms_for, "path"_a,
        "Of every way to a file: its name, why it cannot read this one, and why it cannot write it.");
}
