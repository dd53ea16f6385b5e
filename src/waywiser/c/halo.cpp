#include <algorithm>
#include <utility>

#include "waywiser/c/handles.hpp"
#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/halo/gathered_grid.hpp"

using namespace waywiser;

static_assert(static_cast<int>(HaloVariant::whole_field) == WW_HALO_WHOLE_FIELD);
static_assert(static_cast<int>(HaloVariant::per_neighbor) == WW_HALO_PER_NEIGHBOR);
static_assert(static_cast<int>(HaloVariant::packed) == WW_HALO_PACKED);
static_assert(static_cast<int>(HaloVariant::direct) == WW_HALO_DIRECT);
static_assert(static_cast<int>(HaloVariant::strided) == WW_HALO_STRIDED);
static_assert(static_cast<int>(HaloVariant::gpu_aware) == WW_HALO_GPU_AWARE);
static_assert(static_cast<int>(HaloVariant::mixed) == WW_HALO_MIXED);

namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers(const std::int64_t* values, std::size_t count, const char* what) {
  if (count != 0) given(values, what);
  return {values, values + count};
}

std::size_t checked_dimensions(int dimensions) {
  if (dimensions < 1 || dimensions > 4)
    throw Error(ErrorKind::invalid_input,
                "a grid of " + std::to_string(dimensions) + " dimensions: there can be 1 to 4");
  return static_cast<std::size_t>(dimensions);
}

HaloVariant variant_of(ww_halo_variant variant, ww_halo_variant last = WW_HALO_GPU_AWARE) {
  if (variant < WW_HALO_WHOLE_FIELD || variant > last)
    throw Error(ErrorKind::invalid_input,
                "there is no variant " + std::to_string(static_cast<int>(variant)) + " of a halo exchange");
  return static_cast<HaloVariant>(variant);
}

HaloArray array_of(const ww_group& group, std::size_t cells, const ww_halo_field& field) {
  std::size_t count = 0;
  if (__builtin_mul_overflow(cells, field.components, &count))
    throw Error(ErrorKind::invalid_input, "a field of more elements than there can be");
  return {elements(group, field.values, count, field.type), field.components, field.components_first != 0};
}

// What one rank's arguments are refused for is an error at all ranks, which would wait for it otherwise.
template <typename Function>
void at_all(ww_group& group, Function function) {
  throw_at_all(group.group, failure_of(function));
}

ww_halo* made(ww_group& group, HaloPartition partition) {
  const std::size_t cells = partition.cells;
  return new ww_halo{HaloExchange(group.group, std::move(partition), {}), cells, &group, {}};
}

HaloExchange& exchange_of(ww_halo* halo) { return given(halo, "the halo exchange").exchange; }

}  // namespace

int ww_grid_box(int dimensions, const int64_t* shape, int ranks, int rank, int64_t* first, int64_t* count) {
  return guarded([&] {
    const std::size_t size = checked_dimensions(dimensions);
    const Numbers cells = numbers(shape, size, "the shape");
    given(first, "the place for the first cell");
    given(count, "the place for the number of cells");
    if (rank < 0 || rank >= ranks)
      throw Error(ErrorKind::invalid_input,
                  "there is no rank " + std::to_string(rank) + " of " + std::to_string(ranks));
    const std::vector<int> parts = ranks_per_dimension(cells, ranks);
    const GridBox box =
        even_grid(cells, Numbers(size), std::vector<bool>(size), parts).boxes.at(static_cast<std::size_t>(rank));
    std::ranges::copy(box.first, first);
    std::ranges::copy(box.count, count);
  });
}

int ww_halo_grid(ww_group* group, int dimensions, const int64_t* shape, const int64_t* ghost, const int* periodic,
                 const int64_t* first, const int64_t* count, ww_halo** halo) {
  return guarded([&] {
    given(halo, "the place for the halo exchange");
    Group& ranks = given(group, "the group").group;
    HaloGrid grid;
    GridBox mine;
    at_all(*group, [&] {
      const std::size_t size = checked_dimensions(dimensions);
      given(periodic, "the array periodic");
      grid = {numbers(shape, size, "the shape"),
              numbers(ghost, size, "the array of ghost widths"),
              std::vector<bool>(periodic, periodic + size),
              {}};
      mine = {numbers(first, size, "the first cell of the box"),
              numbers(count, size, "the number of cells of the box")};
    });
    *halo = made(*group, grid_partition(gathered_grid(ranks, std::move(grid), mine), ranks.rank()));
  });
}

int ww_halo_mesh(ww_group* group, size_t cells, const ww_halo_neighbor* neighbors, size_t count, ww_halo** halo) {
  return guarded([&] {
    given(halo, "the place for the halo exchange");
    const Group& ranks = given(group, "the group").group;
    HaloPartition partition;
    at_all(*group, [&] {
      if (count != 0) given(neighbors, "the array of neighbours");
      std::vector<HaloLists> lists;
      for (std::size_t i = 0; i < count; ++i) {
        const ww_halo_neighbor& each = neighbors[i];
        if (each.give_count != 0) given(each.give, "a list of cells to give");
        if (each.take_count != 0) given(each.take, "a list of cells to take");
        lists.push_back({each.rank, {each.give, each.give_count}, {each.take, each.take_count}});
      }
      partition = listed_partition(ranks.rank(), ranks.size(), cells, lists);
    });
    *halo = made(*group, std::move(partition));
  });
}

int ww_halo_cells(const ww_halo* halo, size_t* cells) {
  return guarded([&] { given(cells, "the place for the number of cells") = given(halo, "the halo exchange").cells; });
}

int ww_halo_set_fields(ww_halo* halo, const ww_halo_field* fields, size_t count) {
  return guarded([&] {
    HaloExchange& exchange = exchange_of(halo);
    std::vector<HaloArray> arrays;
    at_all(*halo->group, [&] {
      if (count != 0) given(fields, "the array of fields");
      for (std::size_t i = 0; i < count; ++i) arrays.push_back(array_of(*halo->group, halo->cells, fields[i]));
    });
    exchange.set_fields(arrays);
  });
}

int ww_halo_start(ww_halo* halo, ww_stream* stream) {
  return guarded([&] {
    HaloExchange& exchange = exchange_of(halo);
    stream == nullptr ? exchange.start() : exchange.start(*stream->stream);
  });
}

int ww_halo_finish(ww_halo* halo) {
  return guarded([&] { exchange_of(halo).finish(); });
}

int ww_halo_exchange(ww_halo* halo, ww_stream* stream) {
  return guarded([&] {
    HaloExchange& exchange = exchange_of(halo);
    stream == nullptr ? exchange.exchange() : exchange.exchange(*stream->stream);
  });
}

int ww_halo_use(ww_halo* halo, ww_halo_variant variant) {
  return guarded([&] {
    HaloExchange& exchange = exchange_of(halo);
    HaloVariant wanted{};
    at_all(*halo->group, [&] { wanted = variant_of(variant); });
    exchange.use(wanted);
  });
}

int ww_halo_side_count(const ww_halo* halo, size_t* count) {
  return guarded([&] {
    given(count, "the place for the number of sides") = given(halo, "the halo exchange").exchange.sides().size();
  });
}

int ww_halo_side_at(const ww_halo* halo, size_t index, ww_halo_side* side) {
  return guarded([&] {
    given(side, "the place for the side");
    const std::vector<HaloSideUse> sides = given(halo, "the halo exchange").exchange.sides();
    if (index >= sides.size())
      throw Error(ErrorKind::invalid_input, "there is no side " + std::to_string(index) + " of a halo exchange of " +
                                                std::to_string(sides.size()));
    const HaloSideUse& of = sides[index];
    *side = {of.peer, {}, of.cells, static_cast<int>(of.variant)};
    std::ranges::copy(of.face, side->face);
  });
}

int ww_halo_use_sides(ww_halo* halo, const ww_halo_variant* variants, size_t count) {
  return guarded([&] {
    HaloExchange& exchange = exchange_of(halo);
    std::vector<HaloVariant> wanted;
    at_all(*halo->group, [&] {
      if (count != 0) given(variants, "the array of variants");
      for (std::size_t i = 0; i < count; ++i) wanted.push_back(variant_of(variants[i]));
    });
    exchange.use(wanted);
  });
}

int ww_halo_tune(ww_halo* halo, double seconds) {
  return guarded([&] { exchange_of(halo).tune(seconds); });
}

int ww_halo_tune_file(ww_halo* halo, double seconds, const char* file) {
  return guarded([&] {
    HaloExchange& exchange = exchange_of(halo);
    at_all(*halo->group, [&] {
      if (file == nullptr || *file == '\0')
        throw Error(ErrorKind::invalid_input, "the name of the file of answers is NULL or empty");
    });
    exchange.tune(seconds, file);
  });
}

int ww_halo_times(const ww_halo* halo, ww_halo_seconds* seconds) {
  return guarded([&] {
    given(seconds, "the place for the times");
    const HaloTimes times = given(halo, "the halo exchange").exchange.times();
    *seconds = {times.inside, times.overlapped, times.elapsed};
  });
}

int ww_halo_variant_in_use(const ww_halo* halo, int* variant) {
  return guarded([&] {
    given(variant, "the place for the variant") = static_cast<int>(given(halo, "the halo exchange").exchange.variant());
  });
}

const char* ww_halo_explain(ww_halo* halo) {
  const int code = guarded([&] { halo->text = exchange_of(halo).explain(); });
  return code == WW_OK ? halo->text.c_str() : "";
}

int ww_halo_counts(const ww_halo* halo, ww_halo_variant variant, ww_halo_totals* totals) {
  return guarded([&] {
    given(totals, "the place for the counts");
    const HaloCounts counts = given(halo, "the halo exchange").exchange.counts(variant_of(variant, WW_HALO_MIXED));
    *totals = {counts.exchanges, counts.messages, counts.message_bytes, counts.bus_copies, counts.bus_bytes};
  });
}

void ww_halo_free(ww_halo* halo) { delete halo; }
