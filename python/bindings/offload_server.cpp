#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <utility>

#include "bindings/argument.hpp"
#include "bindings/array.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gpus.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/kernels/elementwise.hpp"
#include "waywiser/offload/array_head_wire.hpp"
#include "waywiser/offload/serve_client.hpp"
#include "waywiser/offload/serve_line.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

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
                           std::span<const HeldArray> arrays, const requests::Numbers& numbers) {
  const nb::gil_scoped_acquire acquired;
  try {
    std::vector<ServedArray> served;
    for (const HeldArray& array : arrays) served.push_back({array, platform});
    const auto answer =
        nb::cast<std::tuple<nb::object, std::vector<std::uint64_t>, double>>(call(name, std::move(served), numbers));
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

// `line`: the address of this machine, whether to encrypt, and whether arrays may go unencrypted to other machines.
// `limits`: bytes, requests and seconds of the client.
void serve(Group& group, const Gpus& gpus, int index, const std::tuple<std::string, bool, bool>& line,
           const nb::callable& may_join, const std::tuple<Bytes, std::uint64_t, double>& limits,
           std::vector<std::string> names, bool builtins_only, const nb::callable& call, const nb::callable& tell) {
  RemoteWorker::Setup setup;
  const auto& [host, encrypt, data_plain] = line;
  setup.platform = gpus.platform;
  setup.gpu = gpu(index);
  setup.limit = std::get<0>(limits);
  setup.limits = {std::get<1>(limits), std::get<2>(limits)};
  setup.lines = open_worker_lines(host, {encrypt, data_plain}, [&](const std::string& other) {
    const nb::gil_scoped_acquire acquired;
    return nb::cast<bool>(may_join(other));
  });
  setup.builtins_only = builtins_only;
  setup.functions = {std::move(names), [&](const auto& name, auto arrays, const auto& numbers) {
                       return call_python(call, gpus.platform, name, arrays, numbers);
                     }};
  without_gil([&] {
    serve_client(
        group, std::move(setup),
        [&](const WorkerState& state) {
          const nb::gil_scoped_acquire acquired;
          tell(state.used, state.requests);
          let_go_of_objects();
        },
        data_plain ? host : std::string());
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

std::span<const std::byte> bytes_in(const nb::bytes& text) {
  return {static_cast<const std::byte*>(text.data()), text.size()};
}

nb::bytes bytes_of(std::span<const std::byte> bytes) { return nb::bytes(bytes.data(), bytes.size()); }

bool hear_client(ServeLine& self, const nb::callable& key) {
  return self.hear_client([&key] {
    const auto told = nb::cast<nb::bytes>(key());
    const auto bytes = bytes_in(told);
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  });
}

void send_text(ServeLine& self, const nb::bytes& text, double seconds) {
  const std::string_view words(text.c_str(), text.size());
  without_gil([&] { self.send(words, Deadline::in(seconds)); });
}

nb::bytes receive_text(ServeLine& self, double seconds) {
  std::string text;
  without_gil([&] { text = self.receive(Deadline::in(seconds)); });
  return bytes_of(std::as_bytes(std::span(text)));
}

void bind_serve_line(nb::module_& m) {
  nb::class_<ServeLine>(m, "ServeLine", "Between a client and a server that prove the key to each other. Raises Error.")
      .def(
          "__init__", [](ServeLine* self, int socket) { new (self) ServeLine(Descriptor(socket)); }, "socket"_a,
          "Takes the descriptor over.")
      .def("fileno", &ServeLine::number)
      .def("is_open", &ServeLine::is_open, "Whether the other end has not closed it.")
      .def(
          "greet_server",
          [](ServeLine& self, const nb::bytes& key, double seconds) {
            const auto bytes = bytes_in(key);
            without_gil([&] { self.greet_server(bytes, Deadline::in(seconds)); });
          },
          "key"_a, "seconds"_a, "The client's side.")
      .def("hear_client", hear_client, "key"_a, "The server's side: never waits. False: more has to come.")
      .def("send", send_text, "text"_a, "seconds"_a)
      .def("receive", receive_text, "seconds"_a)
      .def_prop_ro("secret", [](const ServeLine& self) {
        const auto secret = self.secret().bytes();
        return std::string(reinterpret_cast<const char*>(secret.data()), secret.size());
      });
  m.attr("serve_later") = bytes_of(frame_bytes(FrameKind::later, {}));
}

}  // namespace

void bind_offload_server(nb::module_& m) {
  bind_serve_line(m);
  nb::class_<ServedArray>(m, "ServedArray", "An array of a worker's client.")
      .def_prop_ro("shape", [](const ServedArray& self) { return self.held.head.shape; })
      .def_prop_ro("type", [](const ServedArray& self) { return type_text(self.held.head); })
      .def_prop_ro("device",
                   [](const ServedArray& self) { return self.platform->native_number(self.held.memory.place.index); })
      .def("read", read_served, "into"_a)
      .def("view", view_served, "code"_a, "bits"_a, "As an array for DLPack.");
  m.def("add_here", add_here, "result"_a, "a"_a, "b"_a, "count"_a, "times"_a,
        "result = a + times * b, of float32 numbers on one GPU; returns its seconds.");
  m.def("serve_remote_gpu", serve, "group"_a, "gpus"_a, "gpu"_a, "line"_a, "may_join"_a, "limits"_a, "names"_a,
        "builtins_only"_a, "call"_a, "tell"_a, "Carries out the requests of a client until it ends. Raises Error.");
}
