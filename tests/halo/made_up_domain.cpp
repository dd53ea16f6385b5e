#include "tests/halo/made_up_domain.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace waywiser {
namespace {

using Drawn = std::mt19937_64;

std::int64_t draw(Drawn& generator, std::int64_t least, std::int64_t most) {
  return std::uniform_int_distribution<std::int64_t>(least, most)(generator);
}

// Cuts `whole` at random places into boxes for the ranks [first, end).
void cut(HaloGrid& grid, Drawn& generator, const GridBox& whole, std::size_t first, std::size_t end) {
  if (end - first == 1) {
    grid.boxes[first] = whole;
    return;
  }
  const auto dimension = static_cast<std::size_t>(draw(generator, 0, std::ssize(whole.first) - 1));
  const std::int64_t at = draw(generator, 0, whole.count[dimension]);
  GridBox lower = whole, upper = whole;
  lower.count[dimension] = at;
  upper.first[dimension] += at;
  upper.count[dimension] -= at;
  const std::size_t middle = (first + end) / 2;
  cut(grid, generator, lower, first, middle);
  cut(grid, generator, upper, middle, end);
}

HaloGrid made_up_grid(int ranks, Drawn& generator) {
  const auto dimensions = static_cast<std::size_t>(draw(generator, 1, 4));
  HaloGrid grid;
  for (std::size_t i = 0; i < dimensions; ++i) {
    grid.shape.push_back(draw(generator, 1, dimensions < 3 ? 12 : 5));
    grid.ghost.push_back(draw(generator, 0, dimensions < 3 ? 3 : 2));
    grid.periodic.push_back(draw(generator, 0, 1) == 1);
  }
  if (draw(generator, 0, 2) == 0)
    return even_grid(grid.shape, grid.ghost, grid.periodic, ranks_per_dimension(grid.shape, ranks));
  grid.boxes.resize(static_cast<std::size_t>(ranks));
  cut(grid, generator, {std::vector<std::int64_t>(dimensions, 0), grid.shape}, 0, grid.boxes.size());
  return grid;
}

// The cell of the whole grid for a position in a rank's array; -1: beyond a border.
std::int64_t whole_cell(const HaloGrid& grid, const GridBox& box, const std::vector<std::int64_t>& local,
                        std::int64_t index, bool& owned) {
  std::int64_t cell = 0, stride = 1;
  owned = true;
  for (std::size_t i = local.size(); i-- > 0; index /= local[i]) {
    const std::int64_t inside = index % local[i] - grid.ghost[i], size = grid.shape[i];
    std::int64_t at = box.first[i] + inside;
    owned = owned && inside >= 0 && inside < box.count[i];
    if (!grid.periodic[i] && (at < 0 || at >= size)) return -1;
    at = (at % size + size) % size;
    cell += at * stride;
    stride *= size;
  }
  return cell;
}

std::byte value(std::uint64_t cell, std::uint64_t field, std::uint64_t place, std::uint64_t start) {
  std::uint64_t mixed = ((cell * 31 + field) * 67 + place) * 131 + start;
  mixed = (mixed ^ mixed >> 31) * 0x9e3779b97f4a7c15u;
  return static_cast<std::byte>(mixed >> 40);
}

}  // namespace

void MadeUpDomain::draw_fields(Drawn& generator) {
  const auto count = draw(generator, 1, 4);
  for (std::int64_t i = 0; i < count; ++i)
    fields.push_back({static_cast<DataType>(draw(generator, 0, data_types - 1)),
                      static_cast<std::size_t>(draw(generator, 1, 3)), draw(generator, 0, 1) == 1});
}

MadeUpDomain MadeUpDomain::of(const HaloGrid& grid, std::uint64_t seed) {
  MadeUpDomain domain;
  for (int rank = 0; rank < static_cast<int>(grid.boxes.size()); ++rank) {
    domain.partitions.push_back(grid_partition(grid, rank));
    const GridBox& box = grid.boxes[static_cast<std::size_t>(rank)];
    const std::vector<std::int64_t> local = grid.local_shape(rank);
    std::vector<LocalCell>& cells = domain.cells_.emplace_back(domain.partitions.back().cells);
    const bool empty = std::ranges::count(box.count, 0) != 0;  // a rank without cells needs no ghosts
    for (std::size_t i = 0; i < cells.size() && !empty; ++i)
      cells[i].whole = whole_cell(grid, box, local, static_cast<std::int64_t>(i), cells[i].owned);
  }
  Drawn generator(seed);
  domain.draw_fields(generator);
  return domain;
}

MadeUpDomain MadeUpDomain::of_grid(int ranks, std::uint64_t seed) {
  Drawn generator(seed);
  return of(made_up_grid(ranks, generator), seed);
}

MadeUpDomain MadeUpDomain::of_lists(int ranks, std::uint64_t seed) {
  Drawn generator(seed);
  MadeUpDomain domain;
  const std::int64_t all = draw(generator, 0, 60), last_owner = draw(generator, 0, ranks - 1);
  std::vector<std::int64_t> owners;
  for (std::int64_t i = 0; i < all; ++i) owners.push_back(draw(generator, 0, last_owner));
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<LocalCell>& cells = domain.cells_.emplace_back();
    for (std::int64_t cell = 0; cell < all; ++cell)
      if (owners[static_cast<std::size_t>(cell)] == rank) cells.push_back({cell, true});
    for (std::int64_t i = all == 0 ? 0 : draw(generator, 0, 20); i > 0; --i)
      cells.push_back({draw(generator, 0, all - 1), false});
    if (draw(generator, 0, 1) == 0) std::ranges::shuffle(cells, generator);
  }
  for (int rank = 0; rank < ranks; ++rank) domain.partitions.push_back(domain.listed(rank));
  domain.draw_fields(generator);
  return domain;
}

// The ghosts of `taker` whose cells `giver` owns: the position of each at both ranks.
MadeUpDomain::Places MadeUpDomain::ghosts(const std::vector<LocalCell>& taker, const std::vector<LocalCell>& giver) {
  Places places;
  for (std::size_t at = 0; at < taker.size(); ++at) {
    const auto is_it = [&](const LocalCell& each) { return each.owned && each.whole == taker[at].whole; };
    const auto found = std::ranges::find_if(giver, is_it);
    if (taker[at].owned || found == giver.end()) continue;
    places.taken.push_back(static_cast<std::int64_t>(at));
    places.given.push_back(found - giver.begin());
  }
  return places;
}

HaloPartition MadeUpDomain::listed(int rank) const {
  const std::vector<LocalCell>& mine = cells_[static_cast<std::size_t>(rank)];
  std::vector<std::vector<std::int64_t>> give, take;
  for (const std::vector<LocalCell>& theirs : cells_) {
    give.push_back(ghosts(theirs, mine).given);
    take.push_back(ghosts(mine, theirs).taken);
  }
  std::vector<HaloLists> lists;
  for (std::size_t peer = 0; peer < cells_.size(); ++peer)
    if (give[peer].size() + take[peer].size() != 0) lists.push_back({static_cast<int>(peer), give[peer], take[peer]});
  return listed_partition(rank, static_cast<int>(cells_.size()), mine.size(), lists);
}

std::size_t MadeUpDomain::bytes(int rank, std::size_t field) const {
  return partitions[static_cast<std::size_t>(rank)].cells * fields[field].bytes_per_cell();
}
std::vector<std::byte> MadeUpDomain::before(int rank, std::size_t field, int start) const {
  return values(rank, field, start, false);
}
std::vector<std::byte> MadeUpDomain::after(int rank, std::size_t field, int start) const {
  return values(rank, field, start, true);
}

std::vector<std::byte> MadeUpDomain::values(int rank, std::size_t field, int start, bool ghosts) const {
  const HaloField& of = fields[field];
  const std::size_t size = bytes_of(of.type);
  const std::vector<LocalCell>& cells = cells_[static_cast<std::size_t>(rank)];
  std::vector<std::byte> all(bytes(rank, field), std::byte{0xee});
  for (std::size_t cell = 0; cell < cells.size(); ++cell) {
    if (cells[cell].whole < 0 || (!ghosts && !cells[cell].owned)) continue;
    for (std::size_t component = 0; component < of.components; ++component) {
      const std::size_t element = of.planar ? component * cells.size() + cell : cell * of.components + component;
      for (std::size_t byte = 0; byte < size; ++byte)
        all[element * size + byte] = value(static_cast<std::uint64_t>(cells[cell].whole), field,
                                           component * size + byte, static_cast<std::uint64_t>(start));
    }
  }
  return all;
}

HaloMix made_up_mix(const HaloPartition& partition, std::uint64_t seed, std::span<const HaloVariant> among) {
  HaloMix mix;
  for (const bool given : {true, false}) {
    std::vector<std::uint64_t> of_peer(static_cast<std::size_t>(partition.ranks), 0);
    for (const HaloSide& side : given ? partition.gives : partition.takes) {
      const auto here = static_cast<std::uint64_t>(partition.rank), there = static_cast<std::uint64_t>(side.peer);
      std::uint64_t& next = of_peer[there];
      const std::byte drawn = value(given ? here : there, given ? there : here, next, seed);
      (given ? mix.gives : mix.takes).push_back(among[std::to_integer<std::size_t>(drawn) % among.size()]);
      if (side.cells.count != 0) ++next;
    }
  }
  return mix;
}

}  // namespace waywiser
