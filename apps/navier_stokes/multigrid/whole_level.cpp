#include "apps/navier_stokes/multigrid/whole_level.hpp"

#include <numeric>
#include <utility>
#include <waywiser/halo/halo_exchange.hpp>

namespace flow {
namespace {

template <typename T>
std::vector<T> gathered(waywiser::Group& group, const std::vector<T>& mine, const std::vector<std::size_t>& counts) {
  std::vector<T> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  group.all_gather_v(std::span(mine), std::span(all), counts);
  return all;
}

std::vector<std::size_t> gathered_counts(waywiser::Group& group, std::size_t mine) {
  const auto count = static_cast<std::int64_t>(mine);
  std::vector<std::int64_t> counts(at(group.size()));
  group.all_gather(std::span<const std::int64_t>(&count, 1), std::span(counts));
  return {counts.begin(), counts.end()};
}

// Ghosts' places by an exchange.
std::vector<Index> places(waywiser::Group& group, const LevelRows& mine, std::int64_t first) {
  std::vector<Index> place(at(mine.cells), -1);
  std::iota(place.begin(), place.begin() + mine.rows.rows(), static_cast<Index>(first));
  const waywiser::HaloArray field{waywiser::Elements(std::span(place))};
  const auto partition = partition_of(group.rank(), group.size(), mine.cells, mine.neighbors);
  waywiser::HaloExchange(group, partition, std::span(&field, 1)).exchange();
  return place;
}

}  // namespace

WholeLevel whole_level(waywiser::Group& group, const LevelRows& mine) {
  WholeLevel made;
  made.rows = gathered_counts(group, at(mine.rows.rows()));
  made.first = std::accumulate(made.rows.begin(), made.rows.begin() + group.rank(), std::int64_t{0});
  made.place = places(group, mine, made.first);
  std::vector<Index> lengths, columns;
  for (std::int64_t i = 0; i < mine.rows.rows(); ++i)
    lengths.push_back(mine.rows.first[at(i) + 1] - mine.rows.first[at(i)]);
  for (const Index column : mine.rows.column) columns.push_back(made.place[at(column)]);
  SparseRows& all = made.level.rows;
  const std::vector<std::size_t> entries = gathered_counts(group, columns.size());
  all.column = gathered(group, columns, entries);
  all.weight = gathered(group, mine.rows.weight, entries);
  all.diagonal = gathered(group, mine.rows.diagonal, made.rows);
  all.first.push_back(0);
  for (const Index length : gathered(group, lengths, made.rows)) all.first.push_back(all.first.back() + length);
  made.level.cells = all.rows();
  for (std::size_t rank = 0; rank < made.rows.size(); ++rank)
    made.rank_of.insert(made.rank_of.end(), made.rows[rank], static_cast<int>(rank));
  return made;
}

waywiser::HaloPartition gathering(int rank, const std::vector<std::size_t>& rows) {
  waywiser::HaloPartition all{rank, static_cast<int>(rows.size()), 0, {}, {}};
  std::vector<waywiser::ArrayPart> parts;
  for (const std::size_t count : rows) {
    parts.push_back(waywiser::ArrayPart::whole(waywiser::DataType::uint8, count));
    parts.back().offset = all.cells;
    all.cells += count;
  }
  for (waywiser::ArrayPart& each : parts) each.array_count = all.cells;
  for (int peer = 0; peer < all.ranks; ++peer) {
    if (peer == rank) continue;
    if (rows[at(rank)] > 0) all.gives.push_back({peer, parts[at(rank)]});
    if (rows[at(peer)] > 0) all.takes.push_back({peer, parts[at(peer)]});
  }
  return all;
}

}  // namespace flow
