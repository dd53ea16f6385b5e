#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/group.hpp"
#include "waywiser/comm/runtime_folder.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

using Counts = std::vector<std::size_t>;
using AnyArray = nb::ndarray<nb::ro>;
using WritableArray = nb::ndarray<>;

[[noreturn]] void refuse(nb::handle object, const std::string& why) {
  const std::string type = nb::cast<std::string>(object.type().attr("__name__"));
  throw Error(ErrorKind::invalid_input, "an array was expected, '" + type + "' " + why);
}

DataType type_of(nb::handle object, nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return type.code == static_cast<std::uint8_t>(code) && type.bits == bits && type.lanes == 1;
  };
  if (is(Code::Float, 64)) return DataType::float64;
  if (is(Code::Float, 32)) return DataType::float32;
  if (is(Code::Float, 16)) return DataType::float16;
  if (is(Code::Bfloat, 16)) return DataType::bfloat16;
  if (is(Code::Int, 8)) return DataType::int8;
  if (is(Code::Int, 16)) return DataType::int16;
  if (is(Code::Int, 32)) return DataType::int32;
  if (is(Code::Int, 64)) return DataType::int64;
  if (is(Code::UInt, 8) || is(Code::Bool, 8)) return DataType::uint8;
  refuse(object,
         "has elements of a type that cannot be sent: float64, float32, float16, bfloat16, int8 to int64, uint8");
}

template <typename Array>
void check_layout(nb::handle object, const Array& array) {
  if (array.device_type() != nb::device::cpu::value)
    refuse(object, "is not in host memory: GPU arrays are not taken yet, copy them to the host");
  std::int64_t stride = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) > 1 && array.stride(i) != stride && array.size() != 0)
      refuse(object, "is not contiguous (C order)");
    stride *= static_cast<std::int64_t>(array.shape(i));
  }
}

ConstElements input(nb::handle object) {
  AnyArray array;
  if (!nb::try_cast(object, array, false)) refuse(object, "is none: give it a buffer or DLPack");
  check_layout(object, array);
  const auto* data = static_cast<const std::byte*>(array.data());
  return {ConstRegion{data, array.nbytes(), host(0)}, type_of(object, array.dtype())};
}

Elements output(nb::handle object) {
  WritableArray array;
  if (!nb::try_cast(object, array, false)) refuse(object, "is none that can be written to");
  check_layout(object, array);
  auto* data = static_cast<std::byte*>(array.data());
  return {Region{data, array.nbytes(), host(0)}, type_of(object, array.dtype())};
}

// Ctrl-C in a wait.
bool signal_came() {
  const nb::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() != 0;
}

// The arrays are looked at with the GIL, the rest is done without it. An interruption is raised as what it is.
template <typename Function>
void without_gil(Function function) {
  try {
    const nb::gil_scoped_release released;
    function();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted && PyErr_Occurred() != nullptr) throw nb::python_error();
    throw;
  }
}

// Futures keep their arrays.
class PyFuture {
 public:
  PyFuture(Future future, nb::object arrays) : future_(std::move(future)), arrays_(std::move(arrays)) {}
  bool done() {
    if (future_.done()) arrays_.reset();
    return !arrays_.is_valid();
  }
  void wait() {
    without_gil([this] { future_.wait(); });
    arrays_.reset();
  }

 private:
  Future future_;
  nb::object arrays_;
};

Group join(std::optional<double> timeout) {
  JoinOptions options;
  options.timeout = timeout;
  options.interrupted = signal_came;
  std::optional<Group> group;
  without_gil([&] { group.emplace(Group::join(options)); });
  return std::move(*group);
}

void bind_messages(nb::class_<Group>& type) {
  type.def(
      "send",
      [](Group& self, nb::handle data, int to, int tag) {
        without_gil([&, elements = input(data)] { self.send(elements, to, tag); });
      },
      "data"_a, "to"_a, "tag"_a = 0);
  type.def(
      "recv",
      [](Group& self, nb::handle data, int from, int tag) {
        without_gil([&, elements = output(data)] { self.recv(elements, from, tag); });
      },
      "data"_a, "source"_a, "tag"_a = 0);
  type.def(
      "sendrecv",
      [](Group& self, nb::handle data, int to, nb::handle into, int from, int tag) {
        without_gil([&, give = input(data), take = output(into)] { self.sendrecv(give, to, take, from, tag); });
      },
      "data"_a, "to"_a, "into"_a, "source"_a, "tag"_a = 0);
  type.def(
      "start_send",
      [](Group& self, const nb::object& data, int to, int tag) {
        return PyFuture(self.start_send(input(data), to, tag), data);
      },
      "data"_a, "to"_a, "tag"_a = 0);
  type.def(
      "start_recv",
      [](Group& self, const nb::object& data, int from, int tag) {
        return PyFuture(self.start_recv(output(data), from, tag), data);
      },
      "data"_a, "source"_a, "tag"_a = 0);
  type.def(
      "neighbor_exchange",
      [](Group& self, const nb::list& list) {
        std::vector<Exchange> exchanges;
        for (const nb::handle each : list)
          exchanges.push_back({nb::cast<int>(each[0]), input(each[1]), output(each[2]), nb::cast<int>(each[3]),
                               nb::cast<int>(each[4])});
        without_gil([&] { self.neighbor_exchange(exchanges); });
      },
      "neighbors"_a);
}

void bind_reductions(nb::class_<Group>& type) {
  type.def(
      "all_reduce",
      [](Group& self, nb::handle data, nb::handle out, const std::string& op) {
        without_gil([&, give = input(data), take = output(out)] { self.all_reduce(give, take, parse_reduce_op(op)); });
      },
      "data"_a, "out"_a, "op"_a);
  type.def(
      "start_all_reduce",
      [](Group& self, const nb::object& data, const nb::object& out, const std::string& op) {
        return PyFuture(self.start_all_reduce(input(data), output(out), parse_reduce_op(op)),
                        nb::make_tuple(data, out));
      },
      "data"_a, "out"_a, "op"_a);
  type.def(
      "reduce",
      [](Group& self, nb::handle data, nb::handle out, const std::string& op, int root) {
        const Elements take = out.is_none() ? Elements({}, input(data).type) : output(out);
        without_gil([&, give = input(data)] { self.reduce(give, take, parse_reduce_op(op), root); });
      },
      "data"_a, "out"_a.none(), "op"_a, "root"_a);
  type.def(
      "reduce_scatter",
      [](Group& self, nb::handle data, nb::handle out, const std::string& op) {
        without_gil(
            [&, give = input(data), take = output(out)] { self.reduce_scatter(give, take, parse_reduce_op(op)); });
      },
      "data"_a, "out"_a, "op"_a);
}

void bind_distributions(nb::class_<Group>& type) {
  type.def("barrier", [](Group& self) { without_gil([&] { self.barrier(); }); });
  type.def(
      "broadcast",
      [](Group& self, nb::handle data, int root) {
        without_gil([&, elements = output(data)] { self.broadcast(elements, root); });
      },
      "data"_a, "root"_a);
  type.def(
      "all_gather",
      [](Group& self, nb::handle data, nb::handle out, const std::optional<Counts>& counts) {
        without_gil([&, give = input(data), take = output(out)] {
          counts ? self.all_gather_v(give, take, *counts) : self.all_gather(give, take);
        });
      },
      "data"_a, "out"_a, "counts"_a.none() = nb::none());
  type.def(
      "all_to_all",
      [](Group& self, nb::handle data, nb::handle out) {
        without_gil([&, give = input(data), take = output(out)] { self.all_to_all(give, take); });
      },
      "data"_a, "out"_a);
  type.def(
      "all_to_all_v",
      [](Group& self, nb::handle data, const Counts& gives, nb::handle out, const Counts& takes) {
        without_gil([&, give = input(data), take = output(out)] { self.all_to_all_v(give, gives, take, takes); });
      },
      "data"_a, "give"_a, "out"_a, "take"_a);
  type.def(
      "gather",
      [](Group& self, nb::handle data, nb::handle out, int root, const std::optional<Counts>& counts) {
        const Elements take = out.is_none() ? Elements({}, input(data).type) : output(out);
        without_gil([&, give = input(data)] {
          counts ? self.gather_v(give, take, *counts, root) : self.gather(give, take, root);
        });
      },
      "data"_a, "out"_a.none(), "root"_a, "counts"_a.none() = nb::none());
  type.def(
      "scatter",
      [](Group& self, nb::handle data, nb::handle out, int root, const std::optional<Counts>& counts) {
        const ConstElements give = data.is_none() ? ConstElements({}, output(out).type) : input(data);
        without_gil([&, take = output(out)] {
          counts ? self.scatter_v(give, *counts, take, root) : self.scatter(give, take, root);
        });
      },
      "data"_a.none(), "out"_a, "root"_a, "counts"_a.none() = nb::none());
}

}  // namespace

void bind_comm(nb::module_& m) {
  nb::class_<PyFuture>(m, "Future", "Something that a group has begun; keeps its arrays.")
      .def("done", &PyFuture::done)
      .def("wait", &PyFuture::wait);
  auto type = nb::class_<Group>(m, "Group", "A rank's view of its group. See waywiser.Group.");
  type.def_prop_ro("rank", &Group::rank)
      .def_prop_ro("size", &Group::size)
      .def_prop_rw("timeout", &Group::timeout, &Group::set_timeout)
      .def("close", [](Group& self) { without_gil([&] { self.close(); }); })
      .def(
          "abort", [](Group& self, const std::string& why) { self.abort(why); }, "why"_a)
      .def(
          "split",
          [](Group& self, int color, int key) {
            std::optional<Group> part;
            without_gil([&] { part = self.split(color, key); });
            return part;
          },
          "color"_a, "key"_a);
  bind_messages(type);
  bind_reductions(type);
  bind_distributions(type);
  m.def(
      "runtime_folder", [] { return runtime_folder().string(); },
      "The private folder of running jobs; made if needed.");
  m.def("join", join, "timeout"_a.none() = nb::none(), "The group of all ranks of this job. Raises Error.");
}
