#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <utility>

#include "bindings/argument.hpp"
#include "bindings/array.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gpus.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/connect.hpp"
#include "waywiser/offload/data_road.hpp"
#include "waywiser/offload/remote_driver.hpp"
#include "waywiser/offload/remote_gpu.hpp"
#include "waywiser/offload/request.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

using Shape = std::vector<std::uint64_t>;
using Interval = std::tuple<double, double, double>;  // total, begin, end

bool ctrl_c_came() {
  const nb::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() != 0;
}

RemoteGpuOptions options_of(const std::string& address, const std::string& key, int gpu, double timeout,
                            bool data_plain = false) {
  return {address, key, gpu, timeout, data_plain, ctrl_c_came};
}

RemoteGpu connect(const Argument<std::string>& address, const std::string& key, const Argument<int>& gpu,
                  const Argument<double>& timeout, bool data_plain) {
  const RemoteGpuOptions options = options_of(address("address"), key, gpu("gpu"), timeout("timeout"), data_plain);
  std::optional<RemoteGpu> connected;
  without_gil([&] { connected.emplace(connect_remote_gpu(options)); });
  return std::move(*connected);
}

std::string state_of_server(const Argument<std::string>& address, const std::string& key) {
  const RemoteGpuOptions options = options_of(address("address"), key, 0, 60);
  std::string state;
  without_gil([&] { state = remote_server_state(options); });
  return state;
}

std::shared_ptr<Platform> no_platform() {
  throw Error(ErrorKind::invalid_input, "an array in GPU memory: copy it to the host first");
}

ArrayHead head_of(const std::string& type, Shape shape) {
  const bool of_bools = type == "bool";
  return {of_bools ? DataType::uint8 : parse_data_type(type), of_bools, std::move(shape)};
}

std::uint64_t new_array(RemoteGpu& self, nb::handle values, const Shape& shape) {
  bool of_bools = false;
  const ConstElements given = input_elements(values, no_platform, &of_bools);
  std::uint64_t number = 0;
  without_gil([&] { number = self.array({given.type, of_bools, shape}, given.region); });
  return number;
}

std::uint64_t new_zeros(RemoteGpu& self, const std::string& type, const Shape& shape) {
  const ArrayHead head = head_of(type, shape);
  std::uint64_t number = 0;
  without_gil([&] { number = self.zeros(head); });
  return number;
}

// `make(shape, type)` returns the NumPy array that is filled.
nb::object get(RemoteGpu& self, std::uint64_t array, const nb::callable& make) {
  nb::object made;
  without_gil([&] {
    self.get(array, [&](const ArrayHead& head) {
      const nb::gil_scoped_acquire acquired;
      made = make(head.shape, type_text(head));
      return output_region(made, no_platform);
    });
  });
  return made;
}

// Into an array of NumPy; the shape of what has come.
Shape get_into(RemoteGpu& self, std::uint64_t array, nb::handle into) {
  const Elements room = output_elements(into, no_platform);
  Shape shape;
  without_gil([&] { shape = self.get(array, room).shape; });
  return shape;
}

// Bytes for an array of NumPy, which keeps the memory.
nb::object pinned(RemoteGpu& self, const Argument<Bytes>& bytes) {
  const Bytes wanted = bytes("bytes");
  std::optional<PinnedMemory> made;
  without_gil([&] { made.emplace(self.pinned(wanted)); });
  const Region region = made->region();
  const nb::capsule owner(new PinnedMemory(*made),
                          [](void* memory) noexcept { delete static_cast<PinnedMemory*>(memory); });
  return nb::cast(nb::ndarray<nb::numpy, std::uint8_t>(region.data, {region.bytes}, owner));
}

void put(RemoteGpu& self, std::uint64_t array, const Argument<Bytes>& offset, nb::handle values) {
  const Bytes at = offset("offset");
  const ConstRegion given = input_region(values, no_platform);
  without_gil([&] { self.put(array, at, given); });
}

bool begin_put(RemoteGpu& self, std::uint64_t array, const Argument<Bytes>& offset, nb::handle values) {
  const Bytes at = offset("offset");
  const ConstRegion given = input_region(values, no_platform);
  bool is_begun = false;
  without_gil([&] { is_begun = RemoteDriver(self).begin_put(array, at, given); });
  return is_begun;
}

std::uint64_t run(RemoteGpu& self, const Argument<std::string>& function, const std::vector<std::uint64_t>& arrays,
                  const std::vector<std::pair<std::string, double>>& numbers) {
  const std::string& called = function("function");
  std::uint64_t result = 0;
  without_gil([&] { result = self.run(called, arrays, numbers); });
  return result;
}

std::uint64_t load_kernels(RemoteGpu& self, const nb::bytes& code) {
  const std::string_view given(code.c_str(), code.size());
  std::uint64_t number = 0;
  without_gil([&] { number = self.load_kernels(given); });
  return number;
}

using PyKernelArgument = std::pair<std::string, std::uint64_t>;  // "array" or a type, and its number or bits

KernelArgument kernel_argument(const PyKernelArgument& given) {
  using Kind = KernelArgument::Kind;
  constexpr std::array names{"array", "int32", "int64", "float32", "float64"};
  const auto found = std::ranges::find(names, given.first);
  if (found == names.end()) throw Error(ErrorKind::invalid_input, "a kernel takes no " + given.first);
  return {static_cast<Kind>(found - names.begin()), given.second};
}

void launch(RemoteGpu& self, std::uint64_t code, const Argument<std::string>& kernel,
            const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& block, std::uint32_t shared,
            const std::vector<PyKernelArgument>& given) {
  const std::string& named = kernel("kernel");
  std::vector<KernelArgument> arguments;
  for (const PyKernelArgument& each : given) arguments.push_back(kernel_argument(each));
  without_gil([&] { self.launch(code, named, {grid, block, shared}, arguments); });
}

// Until __exit__ other threads are kept out.
void begin(RemoteGpu& self, std::uint64_t stream, nb::list freed) {
  RemoteDriver driver(self);
  driver.hold();
  try {
    while (nb::len(freed) != 0) {
      const auto number = nb::cast<std::uint64_t>(freed.attr("pop")());
      without_gil([&] { self.free(number); });
    }
    without_gil([&] { self.use_stream(stream); });
  } catch (...) {
    driver.let_go();
    throw;
  }
}

Interval of(const RemoteInterval& interval) { return {interval.total, interval.begin, interval.end}; }

// In the order of waywiser.offload.client.POINTS.
std::vector<Interval> times(RemoteGpu& self) {
  RemoteTimes told;
  without_gil([&] { told = self.times(); });
  const ServerTimes& server = told.server;
  return {of(told.input),    of(server.input),  of(told.compute), of(server.compute),
          of(server.device), of(server.output), of(told.output)};
}

std::pair<double, double> align_clocks(RemoteGpu& self, const Argument<int>& rounds) {
  const int times = rounds("rounds");
  ClockOffset clock;
  without_gil([&] { clock = self.align_clocks(times); });
  return {clock.offset, clock.error};
}

}  // namespace

void bind_offload(nb::module_& m) {
  nb::class_<RemoteGpu>(m, "RemoteGpu", "A GPU of a server. See waywiser.RemoteGpu.")
      .def_prop_ro("name", [](const RemoteGpu& self) { return self.name(); })
      .def_prop_ro("limit", &RemoteGpu::limit)
      .def_prop_ro("encrypted_by", &RemoteGpu::encrypted_by)
      .def_prop_ro("data_encrypted_by", &RemoteGpu::data_encrypted_by)
      .def("array", new_array, "values"_a, "shape"_a)
      .def("zeros", new_zeros, "type"_a, "shape"_a)
      .def("get", get, "array"_a, "make"_a)
      .def("get_into", get_into, "array"_a, "into"_a)
      .def("pinned", pinned, "bytes"_a)
      .def(
          "pinned_by",
          [](const RemoteGpu& self, std::uintptr_t address) {
            return std::string(
                self.pinned_by(reinterpret_cast<const void*>(address)));  // NOLINT(performance-no-int-to-ptr)
          },
          "address"_a)
      .def("put", put, "array"_a, "offset"_a, "values"_a)
      .def("begin_put", begin_put, "array"_a, "offset"_a, "values"_a)
      .def(
          "free", [](RemoteGpu& self, std::uint64_t number) { without_gil([&] { self.free(number); }); }, "number"_a)
      .def("run", run, "function"_a, "arrays"_a, "numbers"_a)
      .def("load_kernels", load_kernels, "code"_a)
      .def("launch", launch, "code"_a, "kernel"_a, "grid"_a, "block"_a, "shared"_a, "arguments"_a)
      .def(
          "copy_of",
          [](RemoteGpu& self, RemoteGpu& other, std::uint64_t array) {
            std::uint64_t number = 0;
            without_gil([&] { number = self.copy_of(other, array); });
            return number;
          },
          "other"_a, "array"_a)
      .def("copies_plain", &RemoteGpu::copies_plain, "other"_a)
      .def(
          "use_road",
          [](RemoteGpu& self, const Argument<std::string>& road) {
            const DataRoad wanted = parse_data_road(road("road"));
            without_gil([&] { self.use_road(wanted); });
          },
          "road"_a.none())
      .def("new_stream", &RemoteGpu::new_stream)
      .def("new_event", &RemoteGpu::new_event)
      .def(
          "use_stream", [](RemoteGpu& self, std::uint64_t stream) { without_gil([&] { self.use_stream(stream); }); },
          "stream"_a)
      .def(
          "record", [](RemoteGpu& self, std::uint64_t event) { without_gil([&] { self.record(event); }); }, "event"_a)
      .def(
          "wait", [](RemoteGpu& self, std::uint64_t event) { without_gil([&] { self.wait(event); }); }, "event"_a)
      .def(
          "await_event", [](RemoteGpu& self, std::uint64_t event) { without_gil([&] { self.await(event); }); },
          "event"_a)
      .def(
          "since",
          [](RemoteGpu& self, std::uint64_t later, std::uint64_t earlier) {
            Seconds seconds = 0;
            without_gil([&] { seconds = self.since(later, earlier); });
            return seconds;
          },
          "later"_a, "earlier"_a)
      .def("flush", [](RemoteGpu& self) { without_gil([&] { self.flush(); }); })
      .def("synchronize", [](RemoteGpu& self) { without_gil([&] { self.synchronize(); }); })
      .def("times", times)
      .def("align_clocks", align_clocks, "rounds"_a)
      .def("begin", begin, "stream"_a, "freed"_a)
      .def(
          "__enter__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __enter__(self) -> RemoteGpu"))
      .def(
          "__exit__", [](RemoteGpu& self, const nb::args&) { RemoteDriver(self).let_go(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def("close", [](RemoteGpu& self) { without_gil([&] { self.close(); }); });
  m.attr("offload_protocol") = offload_protocol;
  m.def("connect_remote_gpu", connect, "address"_a, "key"_a, "gpu"_a, "timeout"_a, "data_plain"_a, "Raises Error.");
  m.def("remote_server_state", state_of_server, "address"_a, "key"_a, "As JSON. Raises Error.");
}
