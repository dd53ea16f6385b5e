#include <optional>

#include "bindings/argument.hpp"
#include "bindings/group_call.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

// Keeps the session of the group that it was made of, and the array.
struct PyWindow {
  PyWindow(Window made, nb::handle exposed) : window(std::move(made)), array(nb::borrow(exposed)) {}
  PyWindow(PyWindow&&) = default;
  PyWindow& operator=(PyWindow&&) = default;
  ~PyWindow() {
    if (array.is_valid() && interpreter_ends()) outlive_interpreter(std::move(*this));
  }
  Window window;
  nb::object array;
};

PyWindow expose(Group& self, nb::handle array, bool symmetric) {
  const Region region = output_bytes(self, array);
  std::optional<Window> window;
  without_gil([&] { window.emplace(self.expose(region, symmetric)); });
  return {std::move(*window), array};
}

void put(Group& self, nb::handle data, const PyWindow& window, const Argument<int>& to, const Argument<Bytes>& offset,
         nb::handle stream) {
  const int target = to("to");
  const Bytes at = offset("offset");
  const ConstRegion give = input_bytes(self, data);
  const StreamUse use(self, stream, give.place);
  without_gil([&] {
    use.settle(self);
    window.window.put(give, target, at);
  });
}

void get(Group& self, nb::handle out, const PyWindow& window, const Argument<int>& from, const Argument<Bytes>& offset,
         nb::handle stream) {
  const int source = from("source");
  const Bytes at = offset("offset");
  const Region take = output_bytes(self, out);
  const StreamUse use(self, stream, take.place);
  without_gil([&] {
    use.settle(self);
    window.window.get(take, source, at);
  });
}

void signal(Group&, const PyWindow& window, const Argument<int>& to, const Argument<Bytes>& offset,
            const Argument<std::uint64_t>& value) {
  const int target = to("to");
  const Bytes at = offset("offset");
  const std::uint64_t number = value("value");
  without_gil([&] { window.window.signal(target, at, number); });
}

void wait(Group&, const PyWindow& window, const Argument<Bytes>& offset, const Argument<std::uint64_t>& at_least) {
  const Bytes at = offset("offset");
  const std::uint64_t number = at_least("at_least");
  without_gil([&] { window.window.wait(at, number); });
}

}  // namespace

void bind_windows(nb::module_& m, nb::class_<Group>& type) {
  nb::class_<PyWindow>(m, "Window", "Memory that all ranks have exposed.")
      .def(
          "bytes_of",
          [](const PyWindow& self, const Argument<int>& rank) { return self.window.bytes_of(rank("rank")); },
          "rank"_a.none());
  type.def("expose", expose, "array"_a.none(), "symmetric"_a = false);
  type.def("put", put, "data"_a.none(), "window"_a, "to"_a.none(), "offset"_a.none(), "stream"_a.none());
  type.def("get", get, "out"_a.none(), "window"_a, "source"_a.none(), "offset"_a.none(), "stream"_a.none());
  type.def("signal", signal, "window"_a, "to"_a.none(), "offset"_a.none(), "value"_a.none());
  type.def("wait", wait, "window"_a, "offset"_a.none(), "at_least"_a.none());
  type.def("flush", [](Group& self) { without_gil([&] { self.flush(); }); });
}

}  // namespace waywiser
