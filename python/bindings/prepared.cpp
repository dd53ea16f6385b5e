#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <vector>

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

// Each neighbour: rank, give, take, give_tag, take_tag.
PyPrepared prepare_exchange(nb::handle self, const nb::list& list) {
  auto& group = nb::cast<Group&>(self);
  std::vector<Exchange> exchanges;
  Place gpu;
  for (const nb::handle each : list) {
    exchanges.push_back({nb::cast<int>(each[0]), input(group, each[1]), output(group, each[2]), nb::cast<int>(each[3]),
                         nb::cast<int>(each[4])});
    for (const Place place : {exchanges.back().give.region.place, exchanges.back().take.region.place})
      if (place.is_gpu()) gpu = place;
  }
  std::optional<Prepared> prepared;
  without_gil([&] { prepared.emplace(group.prepare_exchange(exchanges)); });
  return {std::move(*prepared), gpu, nb::borrow(self), list};
}

// `before`: streams in which the arrays are used, where `stream` is none.
void start_prepared(PyPrepared& self, nb::handle stream, const nb::list& before) {
  auto& group = nb::cast<Group&>(self.group);
  const StreamUse use(group, stream, self.gpu);
  std::vector<StreamUse> uses;
  for (const nb::handle each : before) uses.emplace_back(group, each, self.gpu);
  if (!stream.is_none() && use.stream() == nullptr)
    throw Error(ErrorKind::invalid_input, "a prepared exchange of host arrays is started without stream=");
  without_gil([&] {
    for (const StreamUse& each : uses) each.settle(group);
    use.stream() != nullptr ? self.prepared.start(*use.stream()) : self.prepared.start();
  });
}

void wait_for_prepared(PyPrepared& self) {
  without_gil([&] { self.prepared.wait(); });
}

}  // namespace

void bind_prepared(nb::module_& m, nb::class_<Group>& type) {
  nb::class_<PyPrepared>(m, "Prepared", "An exchange that was prepared once. See waywiser.Prepared.")
      .def("start", start_prepared, "stream"_a.none(), "before"_a)
      .def("wait", wait_for_prepared)
      .def_prop_ro("why_staged", [](const PyPrepared& self) { return self.prepared.why_staged(); });
  type.def(
      "prepare_exchange", [](nb::handle self, const nb::list& list) { return prepare_exchange(self, list); },
      "neighbors"_a);
}

}  // namespace waywiser
