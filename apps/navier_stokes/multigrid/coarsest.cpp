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
      for (std::size_t k = i + 1; k < n; ++k) x[i] -= a[k * n + i] * x[k];
      x[i] /= a[i * n + i];
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

}  // namespace

CoarsestLevel::CoarsestLevel(Exchanges& exchanges, const LevelRows& level, bool singular)
    : exchanges_(exchanges),
      counts_(gathered_counts(exchanges.group(), level.rows.rows())),
      inverse_(exchanges.processor(),
               level.rows.rows() * std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0})),
      right_(exchanges.processor(), std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0})) {
  inverse_.assign(rows_of_inverse(exchanges.group(), level, singular, counts_));
}

void CoarsestLevel::solve(apps::Array<double>& right, double* x) {
  exchanges_.gather(right, right_, counts_);
  const double *inverse = inverse_.data(), *b = right_.data();
  const std::int64_t n = right_.size();
  exchanges_.processor().for_each(right.size(), [=] APPS_CALLABLE(std::int64_t i) {
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += inverse[i * n + j] * b[j];
    x[i] = sum;
  });
}

}  // namespace flow
