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
#include "bindings/gpus.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/storage/cufile_library.hpp"
#include "waywiser/storage/file.hpp"
#include "waywiser/storage/mount.hpp"
#include "waywiser/storage/storage_mechanism.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

// Offset, array, and the stream in which the array is used, as StreamUse takes it.
using Parts = std::vector<std::tuple<Bytes, nb::object, nb::object>>;

class PyStorageFile {
 public:
  PyStorageFile(const std::string& path, bool writes, const FilePlan& plan, const std::string& way, const Gpus* gpus)
      : gpus_(gpus == nullptr ? nullptr : gpus->platform), file_(opened(path, writes, {plan, way, gpus_})) {}

  void read(const Parts& parts) {
    std::vector<FilePart> wanted;
    std::vector<StreamUse> uses;
    for (const auto& [offset, array, stream] : parts) {
      wanted.push_back({offset, output_region(array, platform())});
      uses.emplace_back(platform(), stream, wanted.back().memory.place);
    }
    without_gil([&] {
      for (const StreamUse& each : uses) each.settle();
      file_.read(wanted);
    });
  }

  // Only reads the arrays.
  void write(const Parts& parts) {
    std::vector<FilePart> given;
    std::vector<StreamUse> uses;
    for (const auto& [offset, array, stream] : parts) {
      const ConstRegion from = input_region(array, platform());
      given.push_back({offset, {const_cast<std::byte*>(from.data), from.bytes, from.place}});
      uses.emplace_back(platform(), stream, from.place);
    }
    without_gil([&] {
      for (const StreamUse& each : uses) each.settle();
      file_.write(given);
    });
  }

  File& core() noexcept { return file_; }

 private:
  static File opened(const std::string& path, bool writes, const FileOptions& options) {
    const nb::gil_scoped_release released;
    return writes ? File::replace(path, options) : File::open(path, options);
  }

  PlatformSource platform() const {
    return [this] {
      if (!gpus_) throw Error(ErrorKind::unavailable, "an array is in GPU memory: open the file with gpus=");
      return gpus_;
    };
  }

  std::shared_ptr<Platform> gpus_;
  File file_;
};

template <typename Call>
decltype(auto) outside(Call call) {
  const nb::gil_scoped_release released;
  return call();
}

using WhyNot = std::optional<std::string>;

// Of every mechanism: its name, whose memory it serves, and why it cannot read this file, or write it.
std::vector<std::tuple<std::string, std::string, WhyNot, WhyNot>> mechanisms_for(const std::string& path) {
  const StorageFile file = StorageFile::for_reading(path);
  std::vector<std::tuple<std::string, std::string, WhyNot, WhyNot>> all;
  for (const StorageMechanism& each : storage_mechanisms())
    all.emplace_back(each.name, each.end == FileEnd::gpu ? "gpu" : "host", each.why_not(file, FileUse::read),
                     each.why_not(file, FileUse::write));
  return all;
}

}  // namespace
}  // namespace waywiser

void bind_storage(nb::module_& m) {
  using namespace waywiser;
  nb::class_<FilePlan>(m, "FilePlan", "The rows of a plan about files, read once.")
      .def(nb::init<>())
      .def_static("of", [](const std::string& plan) { return FilePlan::of(plan); }, "plan"_a);
  nb::class_<PyStorageFile>(m, "File", "See waywiser.File.")
      .def(nb::init<const std::string&, bool, const FilePlan&, const std::string&, const Gpus*>(), "path"_a, "writes"_a,
           "plan"_a, "way"_a, "gpus"_a.none() = nb::none())
      .def("size", [](PyStorageFile& self) { return outside([&] { return self.core().size(); }); })
      .def("read", &PyStorageFile::read, "parts"_a, "Parts: offset, array and stream of each.")
      .def("write", &PyStorageFile::write, "parts"_a)
      .def("close", [](PyStorageFile& self) { without_gil([&] { self.core().close(); }); })
      .def("discard", [](PyStorageFile& self) { outside([&] { self.core().discard(); }); })
      .def(
          "way",
          [](PyStorageFile& self, Bytes offset, Bytes bytes, bool to_gpu) {
            return outside([&] { return self.core().way(offset, bytes, to_gpu ? gpu(0) : host(0)); });
          },
          "offset"_a, "bytes"_a, "to_gpu"_a = false)
      .def("drop_cache", [](PyStorageFile& self) { return outside([&] { return self.core().drop_cache(); }); })
      .def("synchronize", [](PyStorageFile& self) { outside([&] { self.core().synchronize(); }); });
  m.def(
      "storage_of", [](const std::string& path) { return storage_of(StorageFile::for_reading(path)); }, "path"_a,
      "How plans call the file system of a file: \"storage ext4 /\".");
  m.def("storage_mechanisms", mechanisms_for, "path"_a,
        "Of every way to a file: its name, whose memory it serves (host, gpu), why it cannot read this one, and why it "
        "cannot write it.");
  m.def(
      "cufile_state",
      [] {
        const CuFileLibrary& library = outside([]() -> const CuFileLibrary& { return CuFileLibrary::usual(); });
        return std::pair(library.why_not(), library.mode());
      },
      "Why cuFile cannot be used (None: it can), and how it moves bytes: nvidia-fs, P2PDMA, compatibility mode.");
}
