#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bindings/argument.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gpus.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

constexpr Seconds patience = 60;

Gpus open_cuda_gpus() { return {open_cuda_platform()}; }

Gpus open_virtual_gpus(const Argument<int>& count, const Argument<Bytes>& memory, const Argument<double>& delay) {
  VirtualMachine machine;
  machine.delay = delay("delay");
  machine.gpus = count("count");
  machine.memory = memory("memory");
  return {open_virtual_platform(machine)};
}

GpuMemory allocate(const Gpus& gpus, const Argument<int>& index, const Argument<Bytes>& bytes) {
  return {gpus.platform,
          gpus.platform->allocate(gpu(index("gpu")), std::max<Bytes>(bytes("bytes"), 1), Allocation::gpu)};
}

// Page-locked bytes of the host near the first GPU, for an array of NumPy, which keeps them.
nb::object pinned(const Gpus& gpus, const Argument<Bytes>& bytes) {
  Platform& platform = *gpus.platform;
  auto made = std::make_unique<GpuMemory>(
      gpus.platform,
      platform.allocate(platform.nearest_host(0), std::max<Bytes>(bytes("bytes"), 1), Allocation::pinned));
  const Region region = made->memory.region();
  const nb::capsule owner(made.release(), [](void* memory) noexcept { delete static_cast<GpuMemory*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(region.data, {region.bytes}, owner));
}

void copy(Platform& platform, Place where, Region destination, ConstRegion source) {
  const nb::gil_scoped_release released;
  const auto stream = platform.open_stream(where);
  stream->copy(destination, source);
  stream->synchronize(Deadline::in(patience));
}

GpuStream open_stream(const Gpus& gpus, const Argument<int>& index) {
  return {gpus.platform, gpus.platform->open_stream(gpu(index("gpu")))};
}

void enqueue_copy(GpuStream& self, const GpuMemory& destination, const GpuMemory& source, Bytes bytes) {
  self.stream->copy(destination.memory.region().slice(0, bytes), source.memory.region().slice(0, bytes));
}

// Whether the work has ended within that time.
bool has_ended(Stream& stream, Seconds limit, bool last) {
  const nb::gil_scoped_release released;
  try {
    stream.synchronize(Deadline::in(limit));
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::timeout || last) throw;
    return false;
  }
}

// Ctrl-C ends it.
void synchronize(GpuStream& self, const Argument<double>& timeout) {
  constexpr Seconds between_questions = 0.1;
  const double whole = timeout("timeout");
  if (whole <= between_questions) return static_cast<void>(has_ended(*self.stream, whole, true));
  for (const Deadline deadline = Deadline::in(whole); !has_ended(*self.stream, between_questions, false);) {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (deadline.passed())
      throw Error(ErrorKind::timeout,
                  "the stream of " + text(self.stream->place()) + " has not finished within " + format_seconds(whole));
  }
}

using HostBytes = nb::ndarray<nb::device::cpu, nb::c_contig>;
using ConstHostBytes = nb::ndarray<nb::ro, nb::device::cpu, nb::c_contig>;

void fill(const GpuMemory& self, const ConstHostBytes& host_array) {
  const Region there = self.memory.region().slice(0, host_array.nbytes());
  const auto* data = static_cast<const std::byte*>(host_array.data());
  copy(*self.platform, there.place, there, {data, there.bytes, host(0)});
}

void copy_out(const GpuMemory& self, const HostBytes& host_array) {
  const Region there = self.memory.region().slice(0, host_array.nbytes());
  copy(*self.platform, there.place, {static_cast<std::byte*>(host_array.data()), there.bytes, host(0)}, there);
}

// For other libraries; the array keeps `self`.
nb::object view(nb::handle self, const std::vector<std::size_t>& shape, int code, int bits) {
  const auto& memory = nb::cast<const GpuMemory&>(self);
  const Region region = memory.memory.region();
  const nb::dlpack::dtype type{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  const nb::ndarray<nb::array_api> array(region.data, shape.size(), shape.data(), self, nullptr, type,
                                         nb::device::cuda::value, memory.platform->native_number(region.place.index));
  return nb::cast(array, nb::rv_policy::reference);
}

}  // namespace

void bind_device(nb::module_& m) {
  nb::class_<Gpus>(m, "Gpus", "GPUs as this process sees them. See waywiser.Gpus.")
      .def_prop_ro("backend", [](const Gpus& self) { return std::string(self.platform->backend()); })
      .def_prop_ro("count", [](const Gpus& self) { return self.platform->gpu_count(); })
      .def("allocate", allocate, "gpu"_a.none(), "bytes"_a.none())
      .def("open_stream", open_stream, "gpu"_a.none())
      .def("pinned", pinned, "bytes"_a.none(), "Page-locked memory of the host, as an array of NumPy.");
  nb::class_<GpuStream>(m, "GpuStream", "A stream of one GPU.")
      .def_prop_ro("number",
                   [](const GpuStream& self) { return reinterpret_cast<std::uintptr_t>(self.stream->native()); })
      .def("copy", enqueue_copy, "destination"_a, "source"_a, "bytes"_a)
      .def("synchronize", synchronize, "timeout"_a.none());
  nb::class_<GpuMemory>(m, "GpuMemory", "Memory of one GPU.")
      .def_prop_ro("address",
                   [](const GpuMemory& self) { return reinterpret_cast<std::uintptr_t>(self.memory.region().data); })
      .def_prop_ro("device",
                   [](const GpuMemory& self) { return self.platform->native_number(self.memory.region().place.index); })
      .def("write", fill, "array"_a, "Fills its beginning from host memory.")
      .def("read", copy_out, "array"_a, "Copies its beginning to host memory.")
      .def("view", view, "shape"_a, "code"_a, "bits"_a, "As an array for DLPack.");
  m.def("open_cuda_gpus", open_cuda_gpus, "Raises Error when there are none.");
  m.def("open_virtual_gpus", open_virtual_gpus, "count"_a.none(), "memory"_a.none(), "delay"_a.none(),
        "GPUs made of host threads, for tests.");
}
