#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/array.hpp"
#include "bindings/bindings.hpp"
#include "bindings/gpus.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/group.hpp"
#include "waywiser/comm/runtime_folder.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

using Counts = std::vector<std::size_t>;

ConstElements input(const Group& group, nb::handle array) {
  return input_elements(array, [&group] { return group.platform(); });
}

Elements output(const Group& group, nb::handle array) {
  return output_elements(array, [&group] { return group.platform(); });
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

std::shared_ptr<Platform> open_cuda() {
  if (const auto why = why_no_cuda())
    throw Error(ErrorKind::unavailable, "an array is on a GPU, but there is no CUDA device: " + *why);
  return open_cuda_platform();
}

Group join_with(JoinOptions options, std::optional<double> timeout, const Gpus* gpus) {
  options.timeout = timeout;
  if (gpus != nullptr) options.platform = gpus->platform;
  options.open_platform = open_cuda;
  options.interrupted = signal_came;
  std::optional<Group> group;
  without_gil([&] { group.emplace(Group::join(options)); });
  return std::move(*group);
}

Group join(std::optional<double> timeout, const Gpus* gpus) { return join_with({}, timeout, gpus); }

using Seat = std::tuple<std::string, int, int>;                     // launcher, rank, size
using Where = std::tuple<std::string, std::uint16_t, std::string>;  // host, port, secret

Group join_at(const Seat& seat, const std::string& job, const Where& where, const nb::object& announce,
              std::optional<double> timeout, const Gpus* gpus) {
  const auto& [launcher, rank, size] = seat;
  const auto& [host_name, port, secret] = where;
  JoinOptions options;
  options.launch = Launch{launcher, rank, size, job, Endpoint{host_name, port}, secret};
  if (!announce.is_none())
    options.announce = [&announce](const Endpoint& root) {
      const nb::gil_scoped_acquire acquired;
      announce(root.port);
    };
  return join_with(std::move(options), timeout, gpus);
}

void bind_messages(nb::class_<Group>& type) {
  type.def(
      "send",
      [](Group& self, nb::handle data, int to, int tag) {
        without_gil([&, elements = input(self, data)] { self.send(elements, to, tag); });
      },
      "data"_a, "to"_a, "tag"_a = 0);
  type.def(
      "recv",
      [](Group& self, nb::handle data, int from, int tag) {
        without_gil([&, elements = output(self, data)] { self.recv(elements, from, tag); });
      },
      "data"_a, "source"_a, "tag"_a = 0);
  type.def(
      "sendrecv",
      [](Group& self, nb::handle data, int to, nb::handle into, int from, int tag) {
        without_gil(
            [&, give = input(self, data), take = output(self, into)] { self.sendrecv(give, to, take, from, tag); });
      },
      "data"_a, "to"_a, "into"_a, "source"_a, "tag"_a = 0);
  type.def(
      "start_send",
      [](Group& self, const nb::object& data, int to, int tag) {
        return PyFuture(self.start_send(input(self, data), to, tag), data);
      },
      "data"_a, "to"_a, "tag"_a = 0);
  type.def(
      "start_recv",
      [](Group& self, const nb::object& data, int from, int tag) {
        return PyFuture(self.start_recv(output(self, data), from, tag), data);
      },
      "data"_a, "source"_a, "tag"_a = 0);
  type.def(
      "neighbor_exchange",
      [](Group& self, const nb::list& list) {
        std::vector<Exchange> exchanges;
        for (const nb::handle each : list)
          exchanges.push_back({nb::cast<int>(each[0]), input(self, each[1]), output(self, each[2]),
                               nb::cast<int>(each[3]), nb::cast<int>(each[4])});
        without_gil([&] { self.neighbor_exchange(exchanges); });
      },
      "neighbors"_a);
}

void bind_reductions(nb::class_<Group>& type) {
  type.def(
      "all_reduce",
      [](Group& self, nb::handle data, nb::handle out, const std::string& op) {
        without_gil([&, give = input(self, data), take = output(self, out)] {
          self.all_reduce(give, take, parse_reduce_op(op));
        });
      },
      "data"_a, "out"_a, "op"_a);
  type.def(
      "start_all_reduce",
      [](Group& self, const nb::object& data, const nb::object& out, const std::string& op) {
        return PyFuture(self.start_all_reduce(input(self, data), output(self, out), parse_reduce_op(op)),
                        nb::make_tuple(data, out));
      },
      "data"_a, "out"_a, "op"_a);
  type.def(
      "reduce",
      [](Group& self, nb::handle data, nb::handle out, const std::string& op, int root) {
        const Elements take = out.is_none() ? Elements({}, input(self, data).type) : output(self, out);
        without_gil([&, give = input(self, data)] { self.reduce(give, take, parse_reduce_op(op), root); });
      },
      "data"_a, "out"_a.none(), "op"_a, "root"_a);
  type.def(
      "reduce_scatter",
      [](Group& self, nb::handle data, nb::handle out, const std::string& op) {
        without_gil([&, give = input(self, data), take = output(self, out)] {
          self.reduce_scatter(give, take, parse_reduce_op(op));
        });
      },
      "data"_a, "out"_a, "op"_a);
}

void bind_distributions(nb::class_<Group>& type) {
  type.def("barrier", [](Group& self) { without_gil([&] { self.barrier(); }); });
  type.def(
      "broadcast",
      [](Group& self, nb::handle data, int root) {
        without_gil([&, elements = output(self, data)] { self.broadcast(elements, root); });
      },
      "data"_a, "root"_a);
  type.def(
      "all_gather",
      [](Group& self, nb::handle data, nb::handle out, const std::optional<Counts>& counts) {
        without_gil([&, give = input(self, data), take = output(self, out)] {
          counts ? self.all_gather_v(give, take, *counts) : self.all_gather(give, take);
        });
      },
      "data"_a, "out"_a, "counts"_a.none() = nb::none());
  type.def(
      "all_to_all",
      [](Group& self, nb::handle data, nb::handle out) {
        without_gil([&, give = input(self, data), take = output(self, out)] { self.all_to_all(give, take); });
      },
      "data"_a, "out"_a);
  type.def(
      "all_to_all_v",
      [](Group& self, nb::handle data, const Counts& gives, nb::handle out, const Counts& takes) {
        without_gil(
            [&, give = input(self, data), take = output(self, out)] { self.all_to_all_v(give, gives, take, takes); });
      },
      "data"_a, "give"_a, "out"_a, "take"_a);
  type.def(
      "gather",
      [](Group& self, nb::handle data, nb::handle out, int root, const std::optional<Counts>& counts) {
        const Elements take = out.is_none() ? Elements({}, input(self, data).type) : output(self, out);
        without_gil([&, give = input(self, data)] {
          counts ? self.gather_v(give, take, *counts, root) : self.gather(give, take, root);
        });
      },
      "data"_a, "out"_a.none(), "root"_a, "counts"_a.none() = nb::none());
  type.def(
      "scatter",
      [](Group& self, nb::handle data, nb::handle out, int root, const std::optional<Counts>& counts) {
        const ConstElements give = data.is_none() ? ConstElements({}, output(self, out).type) : input(self, data);
        without_gil([&, take = output(self, out)] {
          counts ? self.scatter_v(give, *counts, take, root) : self.scatter(give, take, root);
        });
      },
      "data"_a.none(), "out"_a, "root"_a, "counts"_a.none() = nb::none());
}

// Keeps the group that it was made of.
struct PyWindow {
  MemoryWindow window;
};

void bind_windows(nb::module_& m, nb::class_<Group>& type) {
  nb::class_<PyWindow>(m, "Window", "Memory that all ranks have exposed.")
      .def("bytes_of", [](const PyWindow& self, int rank) { return self.window.bytes_of(rank); }, "rank"_a);
  const auto expose = [](Group& self, const auto& memory) {
    std::optional<MemoryWindow> window;
    without_gil([&] { window.emplace(self.expose(memory)); });
    return PyWindow{std::move(*window)};
  };
  type.def(
      "expose", [=](Group& self, nb::handle array) { return expose(self, output(self, array).region); }, "array"_a);
  type.def("expose_gpu", [=](Group& self, const GpuMemory& memory) { return expose(self, memory.memory); }, "memory"_a);
  type.def(
      "put",
      [](Group& self, nb::handle data, const PyWindow& window, int to, Bytes offset) {
        without_gil([&, give = input(self, data).region] { self.put(give, window.window, to, offset); });
      },
      "data"_a, "window"_a, "to"_a, "offset"_a);
  type.def(
      "get",
      [](Group& self, nb::handle out, const PyWindow& window, int from, Bytes offset) {
        without_gil([&, take = output(self, out).region] { self.get(take, window.window, from, offset); });
      },
      "out"_a, "window"_a, "source"_a, "offset"_a);
  type.def(
      "signal",
      [](Group& self, const PyWindow& window, int to, Bytes offset, std::uint64_t value) {
        without_gil([&] { self.signal(window.window, to, offset, value); });
      },
      "window"_a, "to"_a, "offset"_a, "value"_a);
  type.def(
      "wait",
      [](Group& self, const PyWindow& window, Bytes offset, std::uint64_t at_least) {
        without_gil([&] { self.wait(window.window, offset, at_least); });
      },
      "window"_a, "offset"_a, "at_least"_a);
  type.def("flush", [](Group& self) { without_gil([&] { self.flush(); }); });
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
  m.def("join", join, "timeout"_a.none() = nb::none(), "gpus"_a.none() = nb::none(),
        "The group of all ranks of this job. Raises Error.");
  m.def("join_at", join_at, "seat"_a, "job"_a, "where"_a, "announce"_a.none(), "timeout"_a.none(), "gpus"_a.none(),
        "The same where another library has started the ranks; `announce` hears the port of rank 0.");
  bind_windows(m, type);
}
