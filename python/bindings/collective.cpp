#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/group_call.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

using Counts = std::vector<std::size_t>;

// What a call has of its arrays. `stream` is that of the array that a GPU has.
struct Pair {
  bool of_bools = false;
  ConstElements give;
  Elements take;
  StreamUse use;

  Pair(const Group& group, nb::handle data, nb::handle out, nb::handle stream)
      : give(data.is_none() ? ConstElements({}, output(group, out).type) : input(group, data, &of_bools)),
        take(out.is_none() ? Elements({}, give.type) : output(group, out)),
        use(group, stream, give.region.place.is_gpu() ? give.region.place : take.region.place) {}

  // Of bools a sum is whether any is true, a product whether all are: what comes are bools again.
  ReduceOp reduction(const std::string& name) const {
    const ReduceOp op = parse_reduce_op(name);
    if (!of_bools || op == ReduceOp::min || op == ReduceOp::max) return op;
    if (op == ReduceOp::avg) throw Error(ErrorKind::invalid_input, "there is no average of bools");
    return op == ReduceOp::sum ? ReduceOp::max : ReduceOp::min;
  }

  // `enqueued(stream)` where there is one, else `complete()`.
  template <typename Enqueued, typename Complete>
  void run(Enqueued enqueued, Complete complete) {
    without_gil([&] { use.stream() != nullptr ? enqueued(*use.stream()) : complete(); });
  }
  // For calls that are not enqueued.
  template <typename Complete>
  void run(Group& group, Complete complete) {
    without_gil([&] {
      use.settle(group);
      complete();
    });
  }
};

void all_reduce(Group& self, nb::handle data, nb::handle out, const std::string& op, nb::handle stream) {
  Pair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(op);
  pair.run([&](Stream& there) { self.all_reduce(pair.give, pair.take, how, there); },
           [&] { self.all_reduce(pair.give, pair.take, how); });
}

void reduce(Group& self, nb::handle data, nb::handle out, const std::string& op, int root, nb::handle stream) {
  Pair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(op);
  pair.run([&](Stream& there) { self.reduce(pair.give, pair.take, how, root, there); },
           [&] { self.reduce(pair.give, pair.take, how, root); });
}

void reduce_scatter(Group& self, nb::handle data, nb::handle out, const std::string& op, nb::handle stream) {
  Pair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(op);
  pair.run([&](Stream& there) { self.reduce_scatter(pair.give, pair.take, how, there); },
           [&] { self.reduce_scatter(pair.give, pair.take, how); });
}

void broadcast(Group& self, nb::handle data, int root, nb::handle stream) {
  Pair pair(self, data, data, stream);
  pair.run([&](Stream& there) { self.broadcast(pair.take, root, there); }, [&] { self.broadcast(pair.take, root); });
}

void all_gather(Group& self, nb::handle data, nb::handle out, const std::optional<Counts>& counts, nb::handle stream) {
  Pair pair(self, data, out, stream);
  if (counts)
    return pair.run([&](Stream& there) { self.all_gather_v(pair.give, pair.take, *counts, there); },
                    [&] { self.all_gather_v(pair.give, pair.take, *counts); });
  pair.run([&](Stream& there) { self.all_gather(pair.give, pair.take, there); },
           [&] { self.all_gather(pair.give, pair.take); });
}

void all_to_all(Group& self, nb::handle data, nb::handle out, nb::handle stream) {
  Pair pair(self, data, out, stream);
  pair.run([&](Stream& there) { self.all_to_all(pair.give, pair.take, there); },
           [&] { self.all_to_all(pair.give, pair.take); });
}

void all_to_all_v(Group& self, nb::handle data, const Counts& gives, nb::handle out, const Counts& takes,
                  nb::handle stream) {
  Pair pair(self, data, out, stream);
  pair.run([&](Stream& there) { self.all_to_all_v(pair.give, gives, pair.take, takes, there); },
           [&] { self.all_to_all_v(pair.give, gives, pair.take, takes); });
}

// `asked`: the caller has named the stream, so that all arrays are on GPUs. Else the root's other array may be on the
// host.
void gather(Group& self, nb::handle data, nb::handle out, int root, const std::optional<Counts>& counts,
            nb::handle stream, bool asked) {
  Pair pair(self, data, out, stream);
  if (asked && pair.use.stream() != nullptr)
    return without_gil([&] {
      counts ? self.gather_v(pair.give, pair.take, *counts, root, *pair.use.stream())
             : self.gather(pair.give, pair.take, root, *pair.use.stream());
    });
  pair.run(self, [&] {
    counts ? self.gather_v(pair.give, pair.take, *counts, root) : self.gather(pair.give, pair.take, root);
  });
}

void scatter(Group& self, nb::handle data, nb::handle out, int root, const std::optional<Counts>& counts,
             nb::handle stream, bool asked) {
  Pair pair(self, data, out, stream);
  if (asked && pair.use.stream() != nullptr)
    return without_gil([&] {
      counts ? self.scatter_v(pair.give, *counts, pair.take, root, *pair.use.stream())
             : self.scatter(pair.give, pair.take, root, *pair.use.stream());
    });
  pair.run(self, [&] {
    counts ? self.scatter_v(pair.give, *counts, pair.take, root) : self.scatter(pair.give, pair.take, root);
  });
}

// Futures, of the arrays that they keep. `begin(pair)` begins the call.
template <typename Begin>
PyFuture begun(Group& self, const nb::object& data, const nb::object& out, nb::handle stream, Begin begin) {
  Pair pair(self, data, out, stream);
  std::optional<Future> future;
  pair.run(self, [&] { future = begin(pair); });
  return {std::move(*future), nb::make_tuple(data, out)};
}

PyFuture start_barrier(Group& self) { return {self.start_barrier(), nb::none()}; }

PyFuture start_broadcast(Group& self, const nb::object& data, int root, nb::handle stream) {
  return begun(self, data, data, stream, [&](Pair& pair) { return self.start_broadcast(pair.take, root); });
}

PyFuture start_all_reduce(Group& self, const nb::object& data, const nb::object& out, const std::string& op,
                          nb::handle stream) {
  return begun(self, data, out, stream,
               [&](Pair& pair) { return self.start_all_reduce(pair.give, pair.take, pair.reduction(op)); });
}

PyFuture start_reduce(Group& self, const nb::object& data, const nb::object& out, const std::string& op, int root,
                      nb::handle stream) {
  return begun(self, data, out, stream,
               [&](Pair& pair) { return self.start_reduce(pair.give, pair.take, pair.reduction(op), root); });
}

PyFuture start_reduce_scatter(Group& self, const nb::object& data, const nb::object& out, const std::string& op,
                              nb::handle stream) {
  return begun(self, data, out, stream,
               [&](Pair& pair) { return self.start_reduce_scatter(pair.give, pair.take, pair.reduction(op)); });
}

PyFuture start_all_gather(Group& self, const nb::object& data, const nb::object& out, nb::handle stream) {
  return begun(self, data, out, stream, [&](Pair& pair) { return self.start_all_gather(pair.give, pair.take); });
}

PyFuture start_all_to_all(Group& self, const nb::object& data, const nb::object& out, nb::handle stream) {
  return begun(self, data, out, stream, [&](Pair& pair) { return self.start_all_to_all(pair.give, pair.take); });
}

PyFuture start_gather(Group& self, const nb::object& data, const nb::object& out, int root, nb::handle stream) {
  return begun(self, data, out, stream, [&](Pair& pair) { return self.start_gather(pair.give, pair.take, root); });
}

PyFuture start_scatter(Group& self, const nb::object& data, const nb::object& out, int root, nb::handle stream) {
  return begun(self, data, out, stream, [&](Pair& pair) { return self.start_scatter(pair.give, pair.take, root); });
}

void bind_futures(nb::class_<Group>& type) {
  type.def("start_barrier", start_barrier);
  type.def("start_broadcast", start_broadcast, "data"_a, "root"_a, "stream"_a.none());
  type.def("start_all_reduce", start_all_reduce, "data"_a, "out"_a, "op"_a, "stream"_a.none());
  type.def("start_reduce", start_reduce, "data"_a, "out"_a.none(), "op"_a, "root"_a, "stream"_a.none());
  type.def("start_reduce_scatter", start_reduce_scatter, "data"_a, "out"_a, "op"_a, "stream"_a.none());
  type.def("start_all_gather", start_all_gather, "data"_a, "out"_a, "stream"_a.none());
  type.def("start_all_to_all", start_all_to_all, "data"_a, "out"_a, "stream"_a.none());
  type.def("start_gather", start_gather, "data"_a, "out"_a.none(), "root"_a, "stream"_a.none());
  type.def("start_scatter", start_scatter, "data"_a.none(), "out"_a, "root"_a, "stream"_a.none());
}

}  // namespace

void bind_collectives(nb::class_<Group>& type) {
  type.def("barrier", [](Group& self) { without_gil([&] { self.barrier(); }); });
  type.def("broadcast", broadcast, "data"_a, "root"_a, "stream"_a.none());
  type.def("all_reduce", all_reduce, "data"_a, "out"_a, "op"_a, "stream"_a.none());
  type.def("reduce", reduce, "data"_a, "out"_a.none(), "op"_a, "root"_a, "stream"_a.none());
  type.def("reduce_scatter", reduce_scatter, "data"_a, "out"_a, "op"_a, "stream"_a.none());
  type.def("all_gather", all_gather, "data"_a, "out"_a, "counts"_a.none(), "stream"_a.none());
  type.def("all_to_all", all_to_all, "data"_a, "out"_a, "stream"_a.none());
  type.def("all_to_all_v", all_to_all_v, "data"_a, "give"_a, "out"_a, "take"_a, "stream"_a.none());
  type.def("gather", gather, "data"_a, "out"_a.none(), "root"_a, "counts"_a.none(), "stream"_a.none(), "asked"_a);
  type.def("scatter", scatter, "data"_a.none(), "out"_a, "root"_a, "counts"_a.none(), "stream"_a.none(), "asked"_a);
  bind_futures(type);
}

}  // namespace waywiser
