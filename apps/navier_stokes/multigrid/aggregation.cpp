#include "apps/navier_stokes/multigrid/aggregation.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <waywiser/halo/halo_exchange.hpp>

namespace flow {
namespace {

// A neighbour is strong if its weight is at least this part of the row's greatest.
constexpr double strong = 0.1;

// Each cell with the strongest free neighbour of this rank, in the order of the cells.
std::vector<Index> paired(const SparseRows& rows) {
  const std::int64_t n = rows.rows();
  std::vector<Index> pair(at(n), -1);
  Index made = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    if (pair[at(i)] >= 0) continue;
    double greatest = 0, best = 0;
    Index mate = -1;
    for (Index k = rows.first[at(i)]; k < rows.first[at(i) + 1]; ++k) {
      const Index j = rows.column[at(k)];
      const double w = rows.weight[at(k)];
      greatest = std::max(greatest, w);
      if (j < n && j != i && pair[at(j)] < 0 && w > best * (1 + 1e-9)) best = w, mate = j;
    }
    if (mate >= 0 && best >= strong * greatest) pair[at(mate)] = made;
    pair[at(i)] = made++;
  }
  return pair;
}

// The rows of coarse cells; columns of owned cells by `coarse_of`, which also has the ghosts.
SparseRows summed(const SparseRows& fine, const std::vector<Index>& coarse_of, Index coarse) {
  std::vector<std::vector<Index>> members(at(coarse));
  for (std::int64_t i = 0; i < fine.rows(); ++i) members[at(coarse_of[at(i)])].push_back(static_cast<Index>(i));
  SparseRows rows;
  rows.first.push_back(0);
  std::map<Index, double> row;
  for (Index c = 0; c < coarse; ++c) {
    row.clear();
    double diagonal = 0;
    for (const Index i : members[at(c)]) {
      diagonal += fine.diagonal[at(i)];
      for (Index k = fine.first[at(i)]; k < fine.first[at(i) + 1]; ++k) {
        const Index j = coarse_of[at(fine.column[at(k)])];
        if (j == c)
          diagonal -= fine.weight[at(k)];
        else
          row[j] += fine.weight[at(k)];
      }
    }
    for (const auto& [j, w] : row) {
      rows.column.push_back(j);
      rows.weight.push_back(w);
    }
    rows.diagonal.push_back(diagonal);
    rows.first.push_back(static_cast<Index>(rows.column.size()));
  }
  return rows;
}

// Without links from rank to rank.
SparseRows inner_links(const SparseRows& rows, const std::vector<int>& rank_of) {
  SparseRows own;
  own.first.push_back(0);
  own.diagonal = rows.diagonal;
  for (std::int64_t i = 0; i < rows.rows(); ++i) {
    for (Index k = rows.first[at(i)]; k < rows.first[at(i) + 1]; ++k) {
      const Index j = rows.column[at(k)];
      if (j >= rows.rows() || (!rank_of.empty() && rank_of[at(i)] != rank_of[at(j)])) continue;
      own.column.push_back(j);
      own.weight.push_back(rows.weight[at(k)]);
    }
    own.first.push_back(static_cast<Index>(own.column.size()));
  }
  return own;
}

}  // namespace

std::vector<Index> aggregated(const SparseRows& rows, int passes, const std::vector<int>& rank_of) {
  std::vector<Index> coarse_of(at(rows.rows()));
  std::iota(coarse_of.begin(), coarse_of.end(), 0);
  SparseRows present = inner_links(rows, rank_of);
  for (int pass = 0; pass < passes; ++pass) {
    const std::vector<Index> pair = paired(present);
    for (Index& each : coarse_of) each = pair[at(each)];
    const Index made = pair.empty() ? 0 : *std::ranges::max_element(pair) + 1;
    present = summed(present, pair, made);
  }
  return coarse_of;
}

LevelRows coarser(waywiser::Group& group, const LevelRows& fine, std::vector<Index>& coarse_of) {
  const Index own = coarse_of.empty() ? 0 : *std::ranges::max_element(coarse_of) + 1;
  // The number that each ghost's coarse cell has at its owner.
  std::vector<Index> number(at(fine.cells), -1);
  std::ranges::copy(coarse_of, number.begin());
  const waywiser::HaloArray field{waywiser::Elements(std::span(number))};
  const auto partition = partition_of(group.rank(), group.size(), fine.cells, fine.neighbors);
  waywiser::HaloExchange(group, partition, std::span(&field, 1)).exchange();

  // Giver and taker list the same coarse cells, in the order of the giver's numbers.
  const auto numbers = [&](const std::vector<std::int64_t>& cells) {
    std::vector<std::int64_t> list;
    for (const std::int64_t cell : cells) list.push_back(number[at(cell)]);
    std::ranges::sort(list);
    list.erase(std::ranges::unique(list).begin(), list.end());
    return list;
  };
  LevelRows made;
  made.cells = own;
  for (const GhostLists& lists : fine.neighbors) {
    GhostLists coarse{lists.peer, numbers(lists.give), numbers(lists.take)};
    for (const std::int64_t cell : lists.take) {
      const auto place = std::ranges::lower_bound(coarse.take, number[at(cell)]) - coarse.take.begin();
      number[at(cell)] = static_cast<Index>(made.cells + place);
    }
    for (std::int64_t& cell : coarse.take) cell = made.cells++;
    made.neighbors.push_back(std::move(coarse));
  }
  made.rows = summed(fine.rows, number, own);
  coarse_of = std::move(number);
  return made;
}

}  // namespace flow
