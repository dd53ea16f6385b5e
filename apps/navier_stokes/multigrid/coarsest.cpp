#include "apps/navier_stokes/multigrid/coarsest.hpp"

#include <algorithm>
#include <numeric>

namespace flow {
namespace {

std::vector<std::size_t> gathered_counts(waywiser::Group& group, std::int64_t mine) {
  std::vector<std::int64_t> counts(at(group.size()));
  group.all_gather(std::span<const std::int64_t>(&mine, 1), std::span(counts));
  return {counts.begin(), counts.end()};
}

std::vector<double> gathered(waywiser::Group& group, const std::vector<double>& mine,
                             const std::vector<std::size_t>& counts) {
  std::vector<double> all(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  group.all_gather_v(std::span(mine), std::span(all), counts);
  return all;
}

// Rows of the whole matrix that this rank owns, dense.
std::vector<double> dense_rows(waywiser::Group& group, const LevelRows& level, const std::vector<std::size_t>& counts) {
  const std::size_t whole = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  const auto offset = [&](int rank) { return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0}); };
  // The number in the whole level of each cell: ghosts' by an exchange.
  std::vector<std::int64_t> number(at(level.cells), -1);
  std::iota(number.begin(), number.begin() + level.rows.rows(), offset(group.rank()));
  const waywiser::HaloArray field{waywiser::Elements(std::span(number))};
  const auto partition = partition_of(group.rank(), group.size(), level.cells, level.neighbors);
  waywiser::HaloExchange(group, partition, std::span(&field, 1)).exchange();
  std::vector<double> rows(at(level.rows.rows()) * whole, 0);
  for (std::int64_t i = 0; i < level.rows.rows(); ++i) {
    double* row = &rows[at(i) * whole];
    row[number[at(i)]] += level.rows.diagonal[at(i)];
    for (Index k = level.rows.first[at(i)]; k < level.rows.first[at(i) + 1]; ++k)
      row[number[at(level.rows.column[at(k)])]] -= level.rows.weight[at(k)];
  }
  return rows;
}

// The inverse of a symmetric positive definite matrix, by its Cholesky factor.
std::vector<double> inverse_of(std::vector<double> a, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) a[j * n + j] -= a[j * n + k] * a[j * n + k];
    a[j * n + j] = std::sqrt(a[j * n + j]);
    for (std::size_t i = j + 1; i < n; ++i) {
      for (std::size_t k = 0; k < j; ++k) a[i * n + j] -= a[i * n + k] * a[j * n + k];
      a[i * n + j] /= a[j * n + j];
    }
  }
  std::vector<double> inverse(n * n, 0);
  for (std::size_t c = 0; c < n; ++c) {
    double* x = &inverse[c * n];  // column c, which is also row c
    x[c] = 1;
    for (std::size_t i = c; i < n; ++i) {
      for (std::size_t k = c; k < i; ++k) x[i] -= a[i * n + k] * x[k];
      x[i] /= a[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
      x[i] /= a[i * n + i];
      for (std::size_t k = 0; k < i; ++k) x[k] -= a[i * n + k] * x[i];
    }
  }
  return inverse;
}

std::vector<double> rows_of_inverse(waywiser::Group& group, const LevelRows& level, bool singular,
                                    const std::vector<std::size_t>& counts) {
  const std::size_t n = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
  std::vector<std::size_t> values = counts;
  for (std::size_t& each : values) each *= n;
  std::vector<double> whole = gathered(group, dense_rows(group, level, counts), values);
  // With a multiple of the matrix of ones added, the inverse of a singular one maps vectors of mean 0 as before.
  double shift = 0;
  for (std::size_t i = 0; i < n; ++i) shift += whole[i * n + i] / static_cast<double>(n * n);
  if (singular)
    for (double& each : whole) each += shift;
  std::vector<double> inverse = inverse_of(std::move(whole), n);
  if (singular)
    for (double& each : inverse) each -= 1 / (shift * static_cast<double>(n * n));
  const auto before = std::accumulate(values.begin(), values.begin() + group.rank(), std::ptrdiff_t{0});
  const auto mine = static_cast<std::ptrdiff_t>(values[at(group.rank())]);
  return {inverse.begin() + before, inverse.begin() + before + mine};
}

// Every rank gives its rows to all others.
waywiser::HaloPartition gathering(int rank, const std::vector<std::size_t>& counts) {
  waywiser::HaloPartition all{rank, static_cast<int>(counts.size()), 0, {}, {}};
  std::vector<waywiser::ArrayPart> parts;
  for (const std::size_t count : counts) {
    parts.push_back(waywiser::ArrayPart::whole(waywiser::DataType::uint8, count));
    parts.back().offset = all.cells;
    all.cells += count;
  }
  for (waywiser::ArrayPart& each : parts) each.array_count = all.cells;
  for (int peer = 0; peer < all.ranks; ++peer) {
    if (peer == rank) continue;
    if (counts[at(rank)] > 0) all.gives.push_back({peer, parts[at(rank)]});
    if (counts[at(peer)] > 0) all.takes.push_back({peer, parts[at(peer)]});
  }
  return all;
}

}  // namespace

CoarsestLevel::CoarsestLevel(Exchanges& exchanges, const LevelRows& level, bool singular)
    : exchanges_(exchanges),
      counts_(gathered_counts(exchanges.group(), level.rows.rows())),
      first_(std::accumulate(counts_.begin(), counts_.begin() + exchanges.group().rank(), std::int64_t{0})),
      right_(exchanges.processor(), std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0})),
      inverse_(exchanges.processor(), level.rows.rows() * right_.size()),
      sums_(exchanges.processor(), level.rows.rows() * parts),
      others_(exchanges.add(gathering(exchanges.group().rank(), counts_), right_, 1)) {
  const std::vector<double> rows = rows_of_inverse(exchanges.group(), level, singular, counts_);
  std::vector<double> columns(rows.size());
  const std::size_t mine = at(level.rows.rows()), n = at(right_.size());
  for (std::size_t i = 0; i < mine; ++i)
    for (std::size_t j = 0; j < n; ++j) columns[j * mine + i] = rows[i * n + j];
  inverse_.assign(columns);
}

void CoarsestLevel::solve(const apps::Array<double>& right, double* x) {
  apps::Processor& processor = exchanges_.processor();
  const double *mine = right.data(), *inverse = inverse_.data();
  double *b = right_.data(), *sums = sums_.data();
  const std::int64_t n = right_.size(), rows = right.size(), first = first_;
  processor.for_each(rows, [=] APPS_CALLABLE(std::int64_t i) { b[first + i] = mine[i]; });
  exchanges_.fill(others_);
  processor.for_each(parts, rows, [=] APPS_CALLABLE(std::int64_t part, std::int64_t i) {
    double sum = 0;
    for (std::int64_t j = n * part / parts; j < n * (part + 1) / parts; ++j) sum += inverse[j * rows + i] * b[j];
    sums[part * rows + i] = sum;
  });
  processor.for_each(rows, [=] APPS_CALLABLE(std::int64_t i) {
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * rows + i];
    x[i] = sum;
  });
}

}  // namespace flow
