#include <optional>

#include "bindings/argument.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/group/scans.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

using Counts = std::vector<std::size_t>;

void all_reduce(Group& self, nb::handle data, nb::handle out, const Argument<std::string>& op, nb::handle stream) {
  const std::string& name = op("op");
  ArrayPair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(name);
  without_gil([&] { self.all_reduce(pair.give, pair.take, how, pair.mode()); });
}

void reduce(Group& self, nb::handle data, nb::handle out, const Argument<std::string>& op, const Argument<int>& root,
            nb::handle stream) {
  const std::string& name = op("op");
  const int at = root("root");
  ArrayPair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(name);
  without_gil([&] { self.reduce(pair.give, pair.take, how, at, pair.mode()); });
}

void reduce_scatter(Group& self, nb::handle data, nb::handle out, const Argument<std::string>& op, nb::handle stream) {
  const std::string& name = op("op");
  ArrayPair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(name);
  without_gil([&] { self.reduce_scatter(pair.give, pair.take, how, pair.mode()); });
}

template <Future (*call)(Group&, ConstElements, Elements, ReduceOp, Mode)>
void scan_by(Group& self, nb::handle data, nb::handle out, const Argument<std::string>& op, nb::handle stream) {
  const std::string& name = op("op");
  ArrayPair pair(self, data, out, stream);
  const ReduceOp how = pair.reduction(name);
  without_gil([&] { call(self, pair.give, pair.take, how, pair.mode()); });
}

template <void (*call)(Group&, ConstElements, std::span<const std::int64_t>, Elements, std::span<std::int64_t>)>
void locate_by(Group& self, nb::handle data, nb::handle locations, nb::handle out, nb::handle found) {
  ArrayPair pair(self, data, out, nb::none()), at(self, locations, found, nb::none());
  if (at.give.type != DataType::int64 || at.take.type != DataType::int64)
    throw Error(ErrorKind::invalid_input, "locations are int64, not " + std::string(name(at.give.type)));
  const std::span mine(reinterpret_cast<const std::int64_t*>(at.give.region.data), at.give.count());
  const std::span all(reinterpret_cast<std::int64_t*>(at.take.region.data), at.take.count());
  without_gil([&] { call(self, pair.give, mine, pair.take, all); });
}

void broadcast(Group& self, nb::handle data, const Argument<int>& root, nb::handle stream) {
  const int at = root("root");
  ArrayPair pair(self, data, data, stream);
  without_gil([&] { self.broadcast(pair.take, at, pair.mode()); });
}

void all_gather(Group& self, nb::handle data, nb::handle out, const Argument<std::optional<Counts>>& counts,
                nb::handle stream) {
  const std::optional<Counts>& sizes = counts("counts");
  ArrayPair pair(self, data, out, stream);
  if (sizes) return without_gil([&] { self.all_gather_v(pair.give, pair.take, *sizes, pair.mode()); });
  without_gil([&] { self.all_gather(pair.give, pair.take, pair.mode()); });
}

void all_to_all(Group& self, nb::handle data, nb::handle out, nb::handle stream) {
  ArrayPair pair(self, data, out, stream);
  without_gil([&] { self.all_to_all(pair.give, pair.take, pair.mode()); });
}

void all_to_all_v(Group& self, nb::handle data, const Argument<Counts>& gives, nb::handle out,
                  const Argument<Counts>& takes, nb::handle stream) {
  const Counts &give = gives("give"), &take = takes("take");
  ArrayPair pair(self, data, out, stream);
  without_gil([&] { self.all_to_all_v(pair.give, give, pair.take, take, pair.mode()); });
}

// `asked`: the caller has named the stream, so that all arrays are on GPUs. Else the root's other array may be on the
// host.
void gather(Group& self, nb::handle data, nb::handle out, const Argument<int>& root,
            const Argument<std::optional<Counts>>& counts, nb::handle stream, bool asked) {
  const int at = root("root");
  const std::optional<Counts>& sizes = counts("counts");
  ArrayPair pair(self, data, out, stream);
  without_gil([&] {
    const Mode mode = asked ? pair.mode() : Mode::wait;
    if (!asked) pair.use.settle(self);
    sizes ? self.gather_v(pair.give, pair.take, *sizes, at, mode) : self.gather(pair.give, pair.take, at, mode);
  });
}

void scatter(Group& self, nb::handle data, nb::handle out, const Argument<int>& root,
             const Argument<std::optional<Counts>>& counts, nb::handle stream, bool asked) {
  const int at = root("root");
  const std::optional<Counts>& sizes = counts("counts");
  ArrayPair pair(self, data, out, stream);
  without_gil([&] {
    const Mode mode = asked ? pair.mode() : Mode::wait;
    if (!asked) pair.use.settle(self);
    sizes ? self.scatter_v(pair.give, *sizes, pair.take, at, mode) : self.scatter(pair.give, pair.take, at, mode);
  });
}

// Futures, of the arrays that they keep. `begin(pair)` begins the call.
template <typename Begin>
PyFuture begun(Group& self, const nb::object& data, const nb::object& out, nb::handle stream, Begin begin) {
  ArrayPair pair(self, data, out, stream);
  std::optional<Future> future;
  without_gil([&] {
    pair.use.settle(self);
    future = begin(pair);
  });
  return {std::move(*future), nb::make_tuple(data, out)};
}

PyFuture start_barrier(Group& self) { return {self.barrier(Mode::begin), nb::none()}; }

PyFuture start_broadcast(Group& self, const nb::object& data, const Argument<int>& root, nb::handle stream) {
  const int at = root("root");
  return begun(self, data, data, stream, [&](ArrayPair& pair) { return self.broadcast(pair.take, at, Mode::begin); });
}

PyFuture start_all_reduce(Group& self, const nb::object& data, const nb::object& out, const Argument<std::string>& op,
                          nb::handle stream) {
  const std::string& name = op("op");
  return begun(self, data, out, stream, [&](ArrayPair& pair) {
    return self.all_reduce(pair.give, pair.take, pair.reduction(name), Mode::begin);
  });
}

PyFuture start_reduce(Group& self, const nb::object& data, const nb::object& out, const Argument<std::string>& op,
                      const Argument<int>& root, nb::handle stream) {
  const std::string& name = op("op");
  const int at = root("root");
  return begun(self, data, out, stream, [&](ArrayPair& pair) {
    return self.reduce(pair.give, pair.take, pair.reduction(name), at, Mode::begin);
  });
}

PyFuture start_reduce_scatter(Group& self, const nb::object& data, const nb::object& out,
                              const Argument<std::string>& op, nb::handle stream) {
  const std::string& name = op("op");
  return begun(self, data, out, stream, [&](ArrayPair& pair) {
    return self.reduce_scatter(pair.give, pair.take, pair.reduction(name), Mode::begin);
  });
}

template <Future (*call)(Group&, ConstElements, Elements, ReduceOp, Mode)>
PyFuture start_scan_by(Group& self, const nb::object& data, const nb::object& out, const Argument<std::string>& op,
                       nb::handle stream) {
  const std::string& name = op("op");
  return begun(self, data, out, stream,
               [&](ArrayPair& pair) { return call(self, pair.give, pair.take, pair.reduction(name), Mode::begin); });
}

PyFuture start_all_gather(Group& self, const nb::object& data, const nb::object& out, nb::handle stream) {
  return begun(self, data, out, stream,
               [&](ArrayPair& pair) { return self.all_gather(pair.give, pair.take, Mode::begin); });
}

PyFuture start_all_to_all(Group& self, const nb::object& data, const nb::object& out, nb::handle stream) {
  return begun(self, data, out, stream,
               [&](ArrayPair& pair) { return self.all_to_all(pair.give, pair.take, Mode::begin); });
}

PyFuture start_gather(Group& self, const nb::object& data, const nb::object& out, const Argument<int>& root,
                      nb::handle stream) {
  const int at = root("root");
  return begun(self, data, out, stream,
               [&](ArrayPair& pair) { return self.gather(pair.give, pair.take, at, Mode::begin); });
}

PyFuture start_scatter(Group& self, const nb::object& data, const nb::object& out, const Argument<int>& root,
                       nb::handle stream) {
  const int at = root("root");
  return begun(self, data, out, stream,
               [&](ArrayPair& pair) { return self.scatter(pair.give, pair.take, at, Mode::begin); });
}

void bind_futures(nb::class_<Group>& type) {
  type.def("start_barrier", start_barrier);
  type.def("start_broadcast", start_broadcast, "data"_a.none(), "root"_a.none(), "stream"_a.none());
  type.def("start_all_reduce", start_all_reduce, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("start_reduce", start_reduce, "data"_a.none(), "out"_a.none(), "op"_a.none(), "root"_a.none(),
           "stream"_a.none());
  type.def("start_reduce_scatter", start_reduce_scatter, "data"_a.none(), "out"_a.none(), "op"_a.none(),
           "stream"_a.none());
  type.def("start_scan", start_scan_by<scan>, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("start_exscan", start_scan_by<exscan>, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("start_all_gather", start_all_gather, "data"_a.none(), "out"_a.none(), "stream"_a.none());
  type.def("start_all_to_all", start_all_to_all, "data"_a.none(), "out"_a.none(), "stream"_a.none());
  type.def("start_gather", start_gather, "data"_a.none(), "out"_a.none(), "root"_a.none(), "stream"_a.none());
  type.def("start_scatter", start_scatter, "data"_a.none(), "out"_a.none(), "root"_a.none(), "stream"_a.none());
}

}  // namespace

void bind_collectives(nb::class_<Group>& type) {
  type.def("barrier", [](Group& self) { without_gil([&] { self.barrier(); }); });
  type.def("broadcast", broadcast, "data"_a.none(), "root"_a.none(), "stream"_a.none());
  type.def("all_reduce", all_reduce, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("reduce", reduce, "data"_a.none(), "out"_a.none(), "op"_a.none(), "root"_a.none(), "stream"_a.none());
  type.def("reduce_scatter", reduce_scatter, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("scan", scan_by<scan>, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("exscan", scan_by<exscan>, "data"_a.none(), "out"_a.none(), "op"_a.none(), "stream"_a.none());
  type.def("minloc", locate_by<minloc>, "data"_a.none(), "locations"_a.none(), "out"_a.none(), "found"_a.none());
  type.def("maxloc", locate_by<maxloc>, "data"_a.none(), "locations"_a.none(), "out"_a.none(), "found"_a.none());
  type.def("all_gather", all_gather, "data"_a.none(), "out"_a.none(), "counts"_a.none(), "stream"_a.none());
  type.def("all_to_all", all_to_all, "data"_a.none(), "out"_a.none(), "stream"_a.none());
  type.def("all_to_all_v", all_to_all_v, "data"_a.none(), "give"_a.none(), "out"_a.none(), "take"_a.none(),
           "stream"_a.none());
  type.def("gather", gather, "data"_a.none(), "out"_a.none(), "root"_a.none(), "counts"_a.none(), "stream"_a.none(),
           "asked"_a);
  type.def("scatter", scatter, "data"_a.none(), "out"_a.none(), "root"_a.none(), "counts"_a.none(), "stream"_a.none(),
           "asked"_a);
  bind_futures(type);
}

}  // namespace waywiser
