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
#include "waywiser/kernels/elementwise.hpp"
#include "waywiser/offload/connect.hpp"
#include "waywiser/offload/remote_gpu.hpp"
#include "waywiser/offload/serve_client.hpp"

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

RemoteGpuOptions options_of(const std::string& address, const std::string& key, int gpu, double timeout) {
  return {address, key, gpu, timeout, ctrl_c_came};
}

RemoteGpu connect(const Argument<std::string>& address, const std::string& key, const Argument<int>& gpu,
                  const Argument<double>& timeout) {
  const RemoteGpuOptions options = options_of(address("address"), key, gpu("gpu"), timeout("timeout"));
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

std::string type_of_head(const ArrayHead& head) { return head.of_bools ? "bool" : std::string(name(head.type)); }

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
      made = make(head.shape, type_of_head(head));
      return output_region(made, no_platform);
    });
  });
  return made;
}

void put(RemoteGpu& self, std::uint64_t array, const Argument<Bytes>& offset, nb::handle values) {
  const Bytes at = offset("offset");
  const ConstRegion given = input_region(values, no_platform);
  without_gil([&] { self.put(array, at, given); });
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

// An array of the worker, as a function of Python sees it.
struct ServedArray {
  HeldArray held;
  std::shared_ptr<Platform> platform;
};

void read_served(const ServedArray& self, const nb::ndarray<nb::device::cpu, nb::c_contig>& into) {
  const Region there = self.held.memory;
  const Region here{static_cast<std::byte*>(into.data()), into.nbytes(), host(0)};
  const nb::gil_scoped_release released;
  if (there.bytes == 0) return;
  const auto stream = self.platform->open_stream(there.place);
  stream->copy(here, there);
  stream->synchronize(Deadline::in(60));
}

nb::object view_served(nb::handle self, int code, int bits) {
  const auto& [held, platform] = nb::cast<const ServedArray&>(self);
  const std::vector<std::size_t> shape(held.head.shape.begin(), held.head.shape.end());
  const nb::dlpack::dtype type{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  const nb::ndarray<nb::array_api> array(held.memory.data, shape.size(), shape.data(), self, nullptr, type,
                                         nb::device::cuda::value, platform->native_number(held.memory.place.index));
  return nb::cast(array, nb::rv_policy::reference);
}

// An exception of a function that is not ours.
[[noreturn]] void refuse_exception(const nb::python_error& error) {
  std::string words = nb::cast<std::string>(nb::str(error.value()));
  throw Error(ErrorKind::invalid_input, nb::cast<std::string>(error.type().attr("__name__")) + ": " + words);
}

// `call(name, arrays, numbers)` returns a contiguous array, its shape, and the seconds of the function itself.
FunctionResult call_python(const nb::callable& call, const std::shared_ptr<Platform>& platform, const std::string& name,
                           std::span<const HeldArray> arrays, const RemoteRequest::Numbers& numbers) {
  const nb::gil_scoped_acquire acquired;
  try {
    std::vector<ServedArray> served;
    for (const HeldArray& array : arrays) served.push_back({array, platform});
    const auto answer = nb::cast<std::tuple<nb::object, Shape, double>>(call(name, std::move(served), numbers));
    const auto& [values, shape, seconds] = answer;
    bool of_bools = false;
    const ConstElements elements = input_elements(values, [&] { return platform; }, &of_bools);
    // Nobody writes to the result of a function.
    const Region memory{const_cast<std::byte*>(elements.region.data), elements.region.bytes, elements.region.place};
    return {{ArrayHead{elements.type, of_bools, shape}, memory, kept(values)}, seconds};
  } catch (const nb::python_error& error) {
    refuse_exception(error);
  } catch (const nb::cast_error&) {
    throw Error(ErrorKind::invalid_input, "it returned no array");
  }
}

void serve(Group& group, const Gpus& gpus, int index, const std::pair<std::string, bool>& roads, Bytes limit,
           std::vector<std::string> names, bool builtins_only, const nb::callable& call, const nb::callable& tell) {
  RemoteWorker::Setup setup;
  setup.platform = gpus.platform;
  setup.gpu = gpu(index);
  setup.limit = limit;
  setup.roads = open_array_roads(roads.first, roads.second);
  setup.builtins_only = builtins_only;
  setup.functions = {std::move(names), [&](const auto& name, auto arrays, const auto& numbers) {
                       return call_python(call, gpus.platform, name, arrays, numbers);
                     }};
  without_gil([&] {
    serve_client(group, std::move(setup), [&](const WorkerState& state) {
      const nb::gil_scoped_acquire acquired;
      tell(state.used, state.requests);
      let_go_of_objects();
    });
  });
}

// The same addition as a server's repeat_add, on a GPU of this process; the seconds by the GPU's clock.
double add_here(const GpuMemory& result, const GpuMemory& a, const GpuMemory& b, std::uint64_t count,
                std::uint64_t times) {
  const Bytes bytes = count * sizeof(float);
  const Region into = result.memory.region().slice(0, bytes);
  const Region first = a.memory.region().slice(0, bytes), second = b.memory.region().slice(0, bytes);
  const nb::gil_scoped_release released;
  Platform& platform = *result.platform;
  const auto stream = platform.open_stream(into.place);
  const auto begin = platform.create_timed_event(into.place), end = platform.create_timed_event(into.place);
  stream->record(*begin);
  apply_elementwise(*stream, {Elementwise::Kind::add, ElementType::float32, times, 1}, count, into, first, second);
  stream->record(*end);
  stream->synchronize(Deadline::in(600));
  return end->since(*begin);
}

}  // namespace

void bind_offload(nb::module_& m) {
  nb::class_<RemoteGpu>(m, "RemoteGpu", "A GPU of a server. See waywiser.RemoteGpu.")
      .def_prop_ro("name", [](const RemoteGpu& self) { return self.name(); })
      .def_prop_ro("limit", &RemoteGpu::limit)
      .def_prop_ro("encrypted_by", &RemoteGpu::encrypted_by)
      .def("array", new_array, "values"_a, "shape"_a)
      .def("zeros", new_zeros, "type"_a, "shape"_a)
      .def("get", get, "array"_a, "make"_a)
      .def("put", put, "array"_a, "offset"_a, "values"_a)
      .def(
          "free", [](RemoteGpu& self, std::uint64_t array) { without_gil([&] { self.free(array); }); }, "array"_a)
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
      .def(
          "use_road",
          [](RemoteGpu& self, const Argument<std::string>& road) {
            const DataRoad wanted = parse_data_road(road("road"));
            without_gil([&] { self.use_road(wanted); });
          },
          "road"_a.none())
      .def("flush", [](RemoteGpu& self) { without_gil([&] { self.flush(); }); })
      .def("synchronize", [](RemoteGpu& self) { without_gil([&] { self.synchronize(); }); })
      .def("times", times)
      .def("align_clocks", align_clocks, "rounds"_a)
      .def("close", [](RemoteGpu& self) { without_gil([&] { self.close(); }); });
  nb::class_<ServedArray>(m, "ServedArray", "An array of a worker's client.")
      .def_prop_ro("shape", [](const ServedArray& self) { return self.held.head.shape; })
      .def_prop_ro("type", [](const ServedArray& self) { return type_of_head(self.held.head); })
      .def_prop_ro("device",
                   [](const ServedArray& self) { return self.platform->native_number(self.held.memory.place.index); })
      .def("read", read_served, "into"_a)
      .def("view", view_served, "code"_a, "bits"_a, "As an array for DLPack.");
  m.def("add_here", add_here, "result"_a, "a"_a, "b"_a, "count"_a, "times"_a,
        "result = a + times * b, of float32 numbers on one GPU; returns its seconds.");
  m.def("connect_remote_gpu", connect, "address"_a, "key"_a, "gpu"_a, "timeout"_a, "Raises Error.");
  m.def("remote_server_state", state_of_server, "address"_a, "key"_a, "As JSON. Raises Error.");
  m.def("serve_remote_gpu", serve, "group"_a, "gpus"_a, "gpu"_a, "roads"_a, "limit"_a, "names"_a, "builtins_only"_a,
        "call"_a, "tell"_a, "Carries out the requests of a client until it ends. Raises Error.");
}
