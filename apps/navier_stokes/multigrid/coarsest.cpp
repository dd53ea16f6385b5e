#include "apps/navier_stokes/multigrid/coarsest.hpp"

#include <utility>

namespace flow {
namespace {

std::vector<double> dense(const SparseRows& rows) {
  const std::size_t n = at(rows.rows());
  std::vector<double> all(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    all[i * n + i] += rows.diagonal[i];
    for (Index k = rows.first[i]; k < rows.first[i + 1]; ++k) all[i * n + at(rows.column[at(k)])] -= rows.weight[at(k)];
  }
  return all;
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

// Symmetric, as the matrix is.
std::vector<double> inverse_of(const SparseRows& rows, bool singular) {
  const std::size_t n = at(rows.rows());
  std::vector<double> whole = dense(rows);
  // With a multiple of the matrix of ones added, the inverse of a singular one maps vectors of mean 0 as before.
  double shift = 0;
  for (std::size_t i = 0; i < n; ++i) shift += whole[i * n + i] / static_cast<double>(n * n);
  if (singular)
    for (double& each : whole) each += shift;
  std::vector<double> inverse = inverse_of(std::move(whole), n);
  if (singular)
    for (double& each : inverse) each -= 1 / (shift * static_cast<double>(n * n));
  return inverse;
}

}  // namespace

CoarsestLevel::CoarsestLevel(apps::Processor& processor, const SparseRows& rows, bool singular)
    : processor_(processor), rows_(rows.rows()), inverse_(processor, rows_ * rows_), sums_(processor, rows_ * parts) {
  inverse_.assign(inverse_of(rows, singular));
}

void CoarsestLevel::solve(const double* b, double* x) {
  const double* inverse = inverse_.data();
  double* sums = sums_.data();
  const std::int64_t n = rows_;
  processor_.for_each(parts, n, [=] APPS_CALLABLE(std::int64_t part, std::int64_t i) {
    double sum = 0;
    for (std::int64_t j = n * part / parts; j < n * (part + 1) / parts; ++j) sum += inverse[j * n + i] * b[j];
    sums[part * n + i] = sum;
  });
  processor_.for_each(n, [=] APPS_CALLABLE(std::int64_t i) {
    double sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * n + i];
    x[i] = sum;
  });
}

}  // namespace flow
