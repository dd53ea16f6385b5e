#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/argument.hpp"
#include "bindings/array.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/halo/boundary.hpp"
#include "waywiser/halo/gathered_grid.hpp"
#include "waywiser/halo/grid.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/kept_answers.hpp"
#include "waywiser/halo/tuning.hpp"
#include "waywiser/halo/work.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;
using CellList = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

HaloGrid py_even_grid(Numbers shape, Numbers ghost, std::vector<bool> periodic, const std::vector<int>& parts) {
  return even_grid(std::move(shape), std::move(ghost), std::move(periodic), parts);
}

// The first cell and the number of cells that a rank owns, by dimension.
std::pair<Numbers, Numbers> box_of(const HaloGrid& grid, int rank) {
  const GridBox& box = grid.boxes.at(static_cast<std::size_t>(rank));
  return {box.first, box.count};
}

using Boxes = std::vector<std::pair<Numbers, Numbers>>;

HaloGrid py_box_grid(Numbers shape, Numbers ghost, std::vector<bool> periodic, const Boxes& boxes) {
  HaloGrid grid{std::move(shape), std::move(ghost), std::move(periodic), {}};
  for (const auto& [first, count] : boxes) grid.boxes.push_back({first, count});
  return grid;
}

// The grid of ranks that each give their own box. Collective.
HaloGrid py_gathered_grid(nb::handle group, Numbers shape, Numbers ghost, std::vector<bool> periodic, Numbers first,
                          Numbers count) {
  Group& of = nb::cast<Group&>(group);
  const HaloGrid grid{std::move(shape), std::move(ghost), std::move(periodic), {}};
  HaloGrid made;
  without_gil([&] { made = gathered_grid(of, grid, {std::move(first), std::move(count)}); });
  return made;
}

// Fields that are not there: type, components, planar.
using FieldsAsked = std::vector<std::tuple<std::string, std::size_t, bool>>;

HaloBoundary boundary_asked(const HaloGrid& grid, int rank, const FieldsAsked& asked) {
  std::vector<HaloField> fields;
  for (const auto& [type, components, planar] : asked) fields.push_back({parse_data_type(type), components, planar});
  return boundary_of(grid_partition(grid, rank), fields);
}

// The shape by which a plan has what tune() of such an exchange has found. `places`: of the fields of each rank.
std::string halo_shape(const HaloGrid& grid, const FieldsAsked& fields, const std::vector<std::string>& places,
                       const std::string& machine) {
  std::vector<std::uint64_t> shapes;
  for (int rank = 0; rank < static_cast<int>(grid.boxes.size()); ++rank)
    shapes.push_back(shape_of(boundary_asked(grid, rank, fields), places.at(static_cast<std::size_t>(rank)), machine));
  return shape_of_all(shapes);
}

// For each variant: its name, the bytes of each message of a rank, of each copy before them and after them.
nb::list halo_work(const HaloGrid& grid, const FieldsAsked& fields, int rank, bool on_gpu) {
  const HaloBoundary boundary = boundary_asked(grid, rank, fields);
  nb::list all;
  for (const HaloVariant each : halo_variants) {
    const HaloWork work = work_of(each, boundary, on_gpu);
    all.append(nb::make_tuple(std::string(name(each)), work.messages, work.out, work.back));
  }
  return all;
}

// Each neighbour: rank, cells given, cells taken.
HaloPartition py_listed_partition(int rank, int ranks, std::size_t cells, const nb::list& neighbors) {
  std::vector<HaloLists> lists;
  std::vector<CellList> kept_lists;
  for (const nb::handle each : neighbors) {
    HaloLists& list = lists.emplace_back();
    list.peer = item<int>(each[0], "rank");
    for (const bool taken : {false, true}) {
      const CellList& cells_of = kept_lists.emplace_back(nb::cast<CellList>(each[taken ? 2 : 1]));
      (taken ? list.take : list.give) = std::span(cells_of.data(), cells_of.size());
    }
  }
  return listed_partition(rank, ranks, cells, lists);
}

// No address tells the GPU of an array without elements; what it says of its device does.
Place place_of_empty(const Group& group, nb::handle array) {
  constexpr int cuda = 2, cuda_managed = 13;  // of DLPack
  if (!nb::hasattr(array, "__dlpack_device__")) return host(0);
  const auto [kind, number] = nb::cast<std::pair<int, int>>(array.attr("__dlpack_device__")());
  if (kind != cuda && kind != cuda_managed) return host(0);
  const std::shared_ptr<Platform> platform = group.platform();
  for (int index = 0; platform && index < platform->gpu_count(); ++index)
    if (platform->native_number(index) == number) return gpu(index);
  return host(0);
}

// Each field: array, components, planar.
std::vector<HaloArray> halo_arrays(const Group& group, const nb::list& fields) {
  std::vector<HaloArray> arrays;
  for (const nb::handle each : fields) {
    Elements values = output(group, each[0]);
    if (values.region.bytes == 0) values.region.place = place_of_empty(group, each[0]);
    arrays.push_back({values, item<std::size_t>(each[1], "components"), nb::cast<bool>(each[2])});
  }
  return arrays;
}

Place gpu_of_fields(const std::vector<HaloArray>& arrays) {
  for (const HaloArray& each : arrays)
    if (each.values.region.place.is_gpu()) return each.values.region.place;
  return {};
}

// Keeps the group that it was made of, and the arrays.
class PyHaloExchange {
 public:
  // `failed`: why this rank has no fields; empty: it has. All ranks then raise it.
  PyHaloExchange(nb::handle group, const HaloPartition& partition, const nb::list& fields, const std::string& failed)
      : group_(nb::borrow(group)) {
    const std::vector<HaloArray> arrays = arrays_of_all(fields, failed);
    gpu_ = gpu_of_fields(arrays);
    without_gil([&] { exchange_.emplace(of(), partition, arrays); });
    exchange_->keep(kept(nb::borrow(fields)));
  }
  PyHaloExchange(PyHaloExchange&&) = default;
  PyHaloExchange& operator=(PyHaloExchange&&) = default;
  ~PyHaloExchange() {
    if (group_.is_valid() && interpreter_ends()) outlive_interpreter(std::move(*this));
  }

  // `before`: streams in which the arrays are used, where `stream` is none.
  void start(nb::handle stream, const nb::list& before) {
    auto use = std::make_unique<StreamUse>(of(), stream, gpu_);
    std::vector<StreamUse> uses;
    for (const nb::handle each : before) uses.emplace_back(of(), each, gpu_);
    if (!stream.is_none() && use->stream() == nullptr)
      throw Error(ErrorKind::invalid_input, "a halo exchange of host arrays is started without stream=");
    without_gil([&] {
      for (const StreamUse& each : uses) each.settle(of());
      use->stream() != nullptr ? exchange_->start(*use->stream()) : exchange_->start();
    });
    stream_ = std::move(use);
  }
  void finish() {
    without_gil([this] { exchange_->finish(); });
  }
  void set_fields(const nb::list& fields, const std::string& failed) {
    const std::vector<HaloArray> arrays = arrays_of_all(fields, failed);
    without_gil([&] { exchange_->set_fields(arrays); });
    gpu_ = gpu_of_fields(arrays);
    exchange_->keep(kept(nb::borrow(fields)));
  }
  // Where this rank gives no name of a variant, all ranks raise that.
  void use(const Argument<std::string>& variant) {
    const std::string& given = variant("variant");
    HaloVariant wanted{};
    at_all(failure_of([&] { wanted = parse_halo_variant(given); }));
    without_gil([&] { exchange_->use(wanted); });
  }
  void use_sides(const std::vector<std::string>& variants, const std::string& failed) {
    std::vector<HaloVariant> wanted;
    at_all(failure_of([&] {
      if (!failed.empty()) throw Error(ErrorKind::invalid_input, failed);
      for (const std::string& each : variants) wanted.push_back(parse_halo_variant(each));
    }));
    without_gil([&] { exchange_->use(wanted); });
  }
  // Of each side: the rank that it is given to, its face, the cells, the variant.
  nb::list sides() const {
    nb::list all;
    for (const HaloSideUse& each : exchange_->sides())
      all.append(
          nb::make_tuple(each.peer, nb::tuple(nb::cast(each.face)), each.cells, std::string(name(each.variant))));
    return all;
  }
  // For each variant: its name; the median time, NaN if it is unavailable. `file`: empty for none.
  std::vector<std::pair<std::string, double>> tune(const Argument<double>& seconds, const std::string& file) {
    const Seconds time = seconds("seconds");
    std::vector<std::pair<std::string, double>> times;
    without_gil([&] {
      for (const HaloTime& each : exchange_->tune(time, file).times)
        times.emplace_back(name(each.variant), each.why_unavailable.empty() ? each.median : std::nan(""));
    });
    return times;
  }
  std::string variant() const { return std::string(name(exchange_->variant())); }
  std::string explain() const { return exchange_->explain(); }
  std::tuple<double, double, double> times() const {
    const HaloTimes times = exchange_->times();
    return {times.inside, times.overlapped, times.elapsed};
  }
  nb::dict counts(const Argument<std::string>& variant) const {
    const std::string wanted = variant("variant");
    return named(
        exchange_->counts(wanted == name(HaloVariant::mixed) ? HaloVariant::mixed : parse_halo_variant(wanted)));
  }
  nb::dict counts_of_all() const { return named(exchange_->counts()); }

 private:
  static nb::dict named(const HaloCounts& counts) {
    nb::dict named;
    named["exchanges"] = counts.exchanges;
    named["messages"] = counts.messages;
    named["message_bytes"] = counts.message_bytes;
    named["bus_copies"] = counts.bus_copies;
    named["bus_bytes"] = counts.bus_bytes;
    return named;
  }
  Group& of() const { return nb::cast<Group&>(group_); }
  void at_all(const std::optional<Error>& failed) const {
    Group& group = of();
    without_gil([&] { throw_at_all(group, failed); });
  }
  std::vector<HaloArray> arrays_of_all(const nb::list& fields, const std::string& failed) const {
    std::vector<HaloArray> arrays;
    at_all(failure_of([&] {
      if (!failed.empty()) throw Error(ErrorKind::invalid_input, failed);
      arrays = halo_arrays(of(), fields);
    }));
    return arrays;
  }

  nb::object group_;
  std::unique_ptr<StreamUse> stream_;  // of the exchange under way
  Place gpu_;                          // of the arrays; of the host where they are
  std::optional<HaloExchange> exchange_;
};

}  // namespace
}  // namespace waywiser

void bind_halo(nb::module_& m) {
  using namespace waywiser;
  nb::class_<HaloGrid>(m, "HaloGrid", "A structured grid in boxes, one for each rank. See waywiser.GridPartition.")
      .def("box", box_of, "rank"_a)
      .def("local_shape", &HaloGrid::local_shape, "rank"_a);
  nb::class_<HaloPartition>(m, "HaloPartition", "What one rank exchanges, in cells.")
      .def_ro("cells", &HaloPartition::cells)
      .def_prop_ro("neighbors", [](const HaloPartition& self) {
        std::vector<int> peers;
        for (const auto* sides : {&self.gives, &self.takes})
          for (const HaloSide& each : *sides)
            if (each.cells.count != 0) peers.push_back(each.peer);
        return peers;
      });
  m.def("even_grid", py_even_grid, "shape"_a, "ghost"_a, "periodic"_a, "parts"_a);
  m.def("box_grid", py_box_grid, "shape"_a, "ghost"_a, "periodic"_a, "boxes"_a);
  m.def("gathered_grid", py_gathered_grid, "group"_a, "shape"_a, "ghost"_a, "periodic"_a, "first"_a, "count"_a);
  m.def("halo_shape", halo_shape, "grid"_a, "fields"_a, "places"_a, "machine"_a);
  m.def("halo_work", halo_work, "grid"_a, "fields"_a, "rank"_a, "on_gpu"_a);
  m.def(
      "ranks_per_dimension", [](const Numbers& shape, int ranks) { return ranks_per_dimension(shape, ranks); },
      "shape"_a, "ranks"_a);
  m.def("grid_partition", grid_partition, "grid"_a, "rank"_a);
  m.def("listed_partition", py_listed_partition, "rank"_a, "ranks"_a, "cells"_a, "neighbors"_a);
  nb::class_<PyHaloExchange>(m, "HaloExchange", "See waywiser.HaloExchange.")
      .def(nb::init<nb::handle, const HaloPartition&, const nb::list&, const std::string&>(), "group"_a, "partition"_a,
           "fields"_a, "failed"_a)
      .def("start", &PyHaloExchange::start, "stream"_a.none(), "before"_a)
      .def("finish", &PyHaloExchange::finish)
      .def("set_fields", &PyHaloExchange::set_fields, "fields"_a, "failed"_a)
      .def("use", &PyHaloExchange::use, "variant"_a.none())
      .def("use_sides", &PyHaloExchange::use_sides, "variants"_a, "failed"_a)
      .def("sides", &PyHaloExchange::sides)
      .def("tune", &PyHaloExchange::tune, "seconds"_a.none(), "file"_a)
      .def("times", &PyHaloExchange::times)
      .def("explain", &PyHaloExchange::explain)
      .def("counts", &PyHaloExchange::counts, "variant"_a.none())
      .def("counts_of_all", &PyHaloExchange::counts_of_all)
      .def_prop_ro("variant", &PyHaloExchange::variant);
}
