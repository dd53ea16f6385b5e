#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings/argument.hpp"
#include "bindings/array.hpp"
#include "bindings/group_call.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

// Keeps the group that it was made of, and the arrays.
struct PyPrepared {
  PyPrepared(Prepared made, Place place, nb::object of, const nb::object& arrays)
      : prepared(std::move(made)), gpu(place), group(std::move(of)) {
    prepared.keep(kept(arrays));
  }
  PyPrepared(PyPrepared&&) = default;
  PyPrepared& operator=(PyPrepared&&) = default;
  ~PyPrepared() {
    if (group.is_valid() && interpreter_ends()) outlive_interpreter(std::move(*this));
  }

  Prepared prepared;
  Place gpu;  // of the arrays; of the host where they are
  nb::object group;
};

using Indices = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An array, or a tuple: the array, the indices, the length.
std::pair<Elements, ArrayPart> part_of(const Group& group, nb::handle given, bool written) {
  const auto platform = [&group] { return group.platform(); };
  if (!nb::isinstance<nb::tuple>(given)) return box_elements(given, platform, written);
  const auto indices = nb::cast<Indices>(given[1]);
  return listed_elements(given[0], std::span(indices.data(), indices.size()), item<std::size_t>(given[2], "length"),
                         platform, written);
}

// Each neighbour: rank, give, take, give_tag, take_tag.
PyPrepared prepare_exchange(nb::handle self, const nb::list& list) {
  auto& group = nb::cast<Group&>(self);
  std::vector<ArrayExchange> exchanges;
  std::vector<Elements> arrays;
  for (const nb::handle each : list) {
    auto [given, give] = part_of(group, each[1], false);
    auto [taken, take] = part_of(group, each[2], true);
    exchanges.push_back({item<int>(each[0], "rank"), std::move(give), std::move(take), item<int>(each[3], "give_tag"),
                         item<int>(each[4], "take_tag")});
    arrays.insert(arrays.end(), {given, taken});
  }
  Place gpu;
  for (const Elements& each : arrays)
    if (each.region.place.is_gpu()) gpu = each.region.place;
  std::optional<Prepared> prepared;
  without_gil([&] { prepared.emplace(Prepared::of_parts(group, exchanges, arrays)); });
  return {std::move(*prepared), gpu, nb::borrow(self), list};
}

PyPrepared prepare_collective(nb::handle self, const Argument<std::string>& operation, const nb::object& data,
                              const nb::object& out, const Argument<std::string>& op, const Argument<int>& root) {
  auto& group = nb::cast<Group&>(self);
  const std::string &called = operation("operation"), &name = op("op");
  const int at = root("root");
  const ArrayPair pair(group, data, out, nb::none());
  const ReduceOp how = pair.reduction(name);
  std::optional<Prepared> prepared;
  without_gil([&] { prepared.emplace(Prepared::of_collective(group, called, pair.give, pair.take, how, at)); });
  const Place place = pair.give.region.place.is_gpu() ? pair.give.region.place : pair.take.region.place;
  return {std::move(*prepared), place, nb::borrow(self), nb::make_tuple(data, out)};
}

// `before`: streams in which the arrays are used, where `stream` is none.
void start_prepared(PyPrepared& self, nb::handle stream, const nb::list& before) {
  auto& group = nb::cast<Group&>(self.group);
  const StreamUse use(group, stream, self.gpu);
  std::vector<StreamUse> uses;
  for (const nb::handle each : before) uses.emplace_back(group, each, self.gpu);
  if (!stream.is_none() && use.stream() == nullptr)
    throw Error(ErrorKind::invalid_input, "what is prepared for host arrays is started without stream=");
  without_gil([&] {
    for (const StreamUse& each : uses) each.settle(group);
    use.stream() != nullptr ? self.prepared.start(*use.stream()) : self.prepared.start();
  });
}

void wait_for_prepared(PyPrepared& self) {
  without_gil([&] { self.prepared.wait(); });
}

void prepare_gpu(Group& group, nb::handle array, const Argument<Bytes>& largest) {
  const Bytes most = largest("largest");
  const Place place = input(group, array).region.place;
  if (!place.is_gpu())
    throw Error(ErrorKind::invalid_input, "prepare: the array is in host memory, which needs nothing");
  without_gil([&] { group.prepare(place, most); });
}

}  // namespace

void bind_prepared(nb::module_& m, nb::class_<Group>& type) {
  nb::class_<PyPrepared>(m, "Prepared", "What was prepared once. See waywiser.Prepared.")
      .def("start", start_prepared, "stream"_a.none(), "before"_a)
      .def("wait", wait_for_prepared)
      .def_prop_ro("why_staged", [](const PyPrepared& self) { return self.prepared.why_staged(); })
      .def_prop_ro("why_copied", [](const PyPrepared& self) { return self.prepared.why_copied(); })
      .def("explain", [](const PyPrepared& self) { return self.prepared.explain(); });
  type.def(
      "prepare_exchange", [](nb::handle self, const nb::list& list) { return prepare_exchange(self, list); },
      "neighbors"_a);
  type.def("prepare_collective", prepare_collective, "operation"_a.none(), "data"_a.none(), "out"_a.none(),
           "op"_a.none(), "root"_a.none());
  type.def("prepare", prepare_gpu, "array"_a.none(), "largest"_a.none());
}

}  // namespace waywiser
