#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bindings/argument.hpp"
#include "bindings/arrow_device.hpp"
#include "bindings/bindings.hpp"
#include "bindings/group_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/table/column_values.hpp"
#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/schema_agreement.hpp"
#include "waywiser/table/shuffle.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace waywiser {
namespace {

const ArrowSchema& schema_in(nb::handle capsule) { return in_capsule<const ArrowSchema>(capsule, "arrow_schema"); }
Batch batch_in(nb::handle capsule) { return Batch(in_capsule<ArrowArray>(capsule, "arrow_array")); }

// Keeps the group that it was made of.
class PyShuffle {
 public:
  // `schema`: None where this rank has none, for the reason `failed`, which all ranks then raise.
  PyShuffle(nb::handle group, nb::handle schema, int parts, const Argument<Bytes>& budget, const Argument<Bytes>& piece,
            const std::string& purpose, const std::string& failed, const Argument<Bytes>& memory,
            const std::string& spill, std::optional<int> gpu_index)
      : group_(nb::borrow(group)), place_(gpu_index ? gpu(*gpu_index) : host(0)) {
    Group& of = nb::cast<Group&>(group_);
    const ArrowSchema* given = schema.is_none() ? nullptr : &schema_in(schema);
    const auto own = [&]() -> const ArrowSchema& {
      if (given == nullptr) throw Error(ErrorKind::invalid_input, failed);
      return *given;
    };
    const ShuffleOptions options{parts, budget("budget"), piece("piece"), place_, purpose, memory("memory"), spill};
    without_gil([&] { shuffle_ = std::make_unique<Shuffle>(of, own, options); });
  }
  PyShuffle(PyShuffle&&) = default;
  PyShuffle& operator=(PyShuffle&&) = default;
  ~PyShuffle() {
    if (group_.is_valid() && interpreter_ends()) outlive_interpreter(std::move(*this));
  }

  void insert(nb::handle array, int part) {
    const Batch batch = batch_in(array);
    without_gil([&] { shuffle_->insert(batch, part); });
  }
  void insert_by_hash(nb::handle array, const std::vector<int>& keys) {
    const Batch batch = batch_in(array);
    without_gil([&] { shuffle_->insert(batch, keys); });
  }
  void insert_device(nb::handle array, int part) {
    Group& group = nb::cast<Group&>(group_);
    const Batch batch = batch_of_device(*group.platform(), place_, array, group.timeout());
    without_gil([&] { shuffle_->insert(batch, part); });
  }
  void complete(int part) {
    without_gil([&] { shuffle_->complete(part); });
  }
  void finish() {
    without_gil([&] { shuffle_->finish(); });
  }
  void take_all() {
    without_gil([&] { shuffle_->take_all(); });
  }
  std::optional<int> next() {
    std::optional<int> part;
    without_gil([&] { part = shuffle_->next(); });
    return part;
  }
  nb::list extract(int part) {
    std::vector<Batch> batches;
    without_gil([&] { batches = shuffle_->extract(part); });
    nb::list all;
    for (Batch& each : batches) all.append(capsule_of(each.move_out(), "arrow_array"));
    return all;
  }
  DeviceRows extract_device(int part) {
    std::vector<Batch> batches;
    without_gil([&] { batches = shuffle_->extract(part); });
    return {nb::cast<Group&>(group_).platform(), place_, std::move(batches)};
  }
  std::string way_to(int rank, Bytes bytes) const { return shuffle_->way_to(rank, bytes); }
  int parts() const { return shuffle_->parts(); }
  Bytes piece() const { return shuffle_->piece(); }
  nb::dict counts() const {
    const ShuffleCounts counts = shuffle_->counts();
    nb::list peers;
    for (const ShuffleCounts::Peer& each : counts.peers) {
      nb::list ways;
      for (const WayCounts& way : each.path.ways) ways.append(nb::make_tuple(way.way, way.pieces, way.bytes));
      peers.append(nb::make_tuple(each.rows_out, each.bytes_out, each.pieces_out, each.rows_in, each.bytes_in,
                                  each.pieces_in, each.path.seconds_out, each.path.seconds_in, ways));
    }
    nb::dict named;
    named["peers"] = peers;
    named["most_under_way"] = counts.most_under_way;
    named["waited"] = counts.waited;
    named["spilled"] = counts.spilled;
    return named;
  }

 private:
  nb::object group_;
  Place place_;
  std::unique_ptr<Shuffle> shuffle_;
};

using PartNumbers = nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>;

// The part of each row by the hash of its keys.
PartNumbers parts_of_rows(nb::handle schema, nb::handle array, const std::vector<int>& keys, int parts) {
  const TableSchema parsed = parse_schema(schema_in(schema));
  const Batch batch = batch_in(array);
  if (parts < 1) throw Error(ErrorKind::invalid_input, "parts= is at least 1");
  check_batch(parsed, batch.array());
  auto numbers = std::make_unique<std::vector<std::int32_t>>();
  {
    const nb::gil_scoped_release released;
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(batch.rows()));
    RowHashes(parsed, batch.array(), keys).write(0, hashes);
    for (const std::uint64_t hash : hashes) numbers->push_back(part_of_hash(hash, parts));
  }
  std::vector<std::int32_t>& kept_numbers = *numbers.release();
  const nb::capsule owner(&kept_numbers, [](void* it) noexcept { delete static_cast<std::vector<std::int32_t>*>(it); });
  return PartNumbers(kept_numbers.data(), {kept_numbers.size()}, owner);
}

// `failed`: what all ranks raise, instead of this rank's columns.
void agree_on_columns_of(Group& group, const NamedTypes& columns, const std::string& purpose,
                         const std::string& failed) {
  const auto own = [&] {
    if (!failed.empty()) throw Error(ErrorKind::invalid_input, failed);
    return columns;
  };
  without_gil([&] { agree_on_columns(group, own, purpose); });
}

}  // namespace
}  // namespace waywiser

void bind_table(nb::module_& m) {
  using namespace waywiser;
  m.def("parts_of_rows", parts_of_rows, "schema"_a, "array"_a, "keys"_a, "parts"_a);
  m.def("agree_on_columns", agree_on_columns_of, "group"_a, "columns"_a, "purpose"_a, "failed"_a);
  bind_arrow_device(m);
  nb::class_<PyShuffle>(m, "Shuffle", "See waywiser.table.Shuffle.")
      .def(nb::init<nb::handle, nb::handle, int, const Argument<Bytes>&, const Argument<Bytes>&, const std::string&,
                    const std::string&, const Argument<Bytes>&, const std::string&, std::optional<int>>(),
           "group"_a, "schema"_a.none(), "parts"_a, "budget"_a.none(), "piece"_a.none(), "purpose"_a, "failed"_a,
           "memory"_a.none(), "spill"_a, "gpu"_a.none())
      .def("insert", &PyShuffle::insert, "array"_a, "part"_a)
      .def("insert_device", &PyShuffle::insert_device, "array"_a, "part"_a)
      .def("insert_by_hash", &PyShuffle::insert_by_hash, "array"_a, "keys"_a)
      .def("complete", &PyShuffle::complete, "part"_a)
      .def("finish", &PyShuffle::finish)
      .def("take_all", &PyShuffle::take_all)
      .def("next", &PyShuffle::next)
      .def("extract", &PyShuffle::extract, "part"_a)
      .def("extract_device", &PyShuffle::extract_device, "part"_a)
      .def("parts", &PyShuffle::parts)
      .def("piece", &PyShuffle::piece)
      .def("way_to", &PyShuffle::way_to, "rank"_a, "bytes"_a)
      .def("counts", &PyShuffle::counts);
}
