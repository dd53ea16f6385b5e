#pragma once

// The method of conjugate gradients (Hestenes and Stiefel 1952) for Poisson's equation on a grid of three dimensions:
// 6 x - (its six neighbours) = b, with zero beyond the border.
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <waywiser/halo/grid.hpp>

#include "apps/comparison.hpp"
#include "apps/exchange.hpp"
#include "apps/grid.hpp"
#include "apps/parallel.hpp"

namespace apps {

// The cells of a rank in its arrays, which have a ghost on each side.
struct Cells {
  std::int64_t nz, ny, nx;  // own cells

  APPS_CALLABLE std::int64_t width() const { return nx + 2; }
  APPS_CALLABLE std::int64_t plane() const { return (ny + 2) * (nx + 2); }
  // The first own cell of a row, counted through the planes.
  APPS_CALLABLE std::int64_t row(std::int64_t r) const { return (r / ny + 1) * plane() + (r % ny + 1) * width() + 1; }
  std::int64_t rows() const { return nz * ny; }
  std::int64_t with_ghosts() const { return (nz + 2) * plane(); }
};

// The left side of the equation for one cell.
template <typename Load>
APPS_CALLABLE double laplace(const double* x, std::int64_t width, std::int64_t plane, Load load) {
  return 6 * load(x) -
         (((load(x - plane) + load(x + plane)) + (load(x - width) + load(x + width))) + (load(x - 1) + load(x + 1)));
}
APPS_CALLABLE inline double laplace(const double* x, std::int64_t i, std::int64_t width, std::int64_t plane) {
  return laplace(x + i, width, plane, [](const double* from) { return read(from); });
}

// A solution without any pattern, known for each cell of the whole grid: -1 to 1, zero outside.
struct KnownSolution {
  std::int64_t nz, ny, nx;  // of the whole grid

  APPS_CALLABLE double operator()(std::int64_t z, std::int64_t y, std::int64_t x) const {
    if (z < 0 || y < 0 || x < 0 || z >= nz || y >= ny || x >= nx) return 0;
    std::uint64_t mixed = static_cast<std::uint64_t>((z * ny + y) * nx + x + 1) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed ^= mixed >> 27;
    return static_cast<double>(mixed >> 11) * 0x1p-52 - 1;
  }
};

// The right side for a cell of this rank.
struct RightSide {
  KnownSolution known;
  std::int64_t z, y, x;  // of the rank's first cell

  APPS_CALLABLE double operator()(std::int64_t dz, std::int64_t dy, std::int64_t dx) const {
    const std::int64_t Z = z + dz, Y = y + dy, X = x + dx;
    return 6 * known(Z, Y, X) -
           (((known(Z - 1, Y, X) + known(Z + 1, Y, X)) + (known(Z, Y - 1, X) + known(Z, Y + 1, X))) +
            (known(Z, Y, X - 1) + known(Z, Y, X + 1)));
  }
};

// 0 for 0 / 0: a system that is solved exactly stays so.
inline double ratio(double a, double b) { return a == 0 ? 0 : a / b; }

// One rank's part of the equation and of the method's vectors. The whole method in its usual form: this is what a
// program on the library looks like.
class ConjugateGradient {
 public:
  ConjugateGradient(waywiser::Group& group, waywiser::HaloGrid grid, int threads)
      : group_(group),
        processor_(group, threads),
        grid_(std::move(grid)),
        box_(grid_.boxes[static_cast<std::size_t>(group.rank())]),
        cells_{box_.count[0], box_.count[1], box_.count[2]},
        x_(processor_, cells_.with_ghosts()),
        r_(processor_, cells_.with_ghosts()),
        p_(processor_, cells_.with_ghosts()),
        q_(processor_, cells_.with_ghosts()),
        exchange_(group, processor_, face_partition(grid_, group.rank()), {p_.field()}),
        exchange_x_(group, processor_, face_partition(grid_, group.rank()), {x_.field()}) {}

  void use(const Way& way) { exchange_.use(way); }
  waywiser::HaloVariant variant() const noexcept { return exchange_.variant(); }
  const waywiser::GridBox& box() const noexcept { return box_; }

  // x = 0, r = p = b.
  void reset() {
    const RightSide b = right_side();
    const Cells cells = cells_;
    double *x = x_.data(), *r = r_.data(), *p = p_.data();
    processor_.for_each(cells.with_ghosts(), [=] APPS_CALLABLE(std::int64_t i) { x[i] = r[i] = p[i] = 0; });
    processor_.for_each(cells.rows(), cells.nx, [=] APPS_CALLABLE(std::int64_t row, std::int64_t k) {
      const std::int64_t i = cells.row(row) + k;
      r[i] = p[i] = b(row / cells.ny, row % cells.ny, k);
    });
    rr_ = dot(r, r);
    first_rr_ = rr_;
  }

  void steps(std::int64_t count) {
    const Cells cells = cells_;
    double *x = x_.data(), *r = r_.data(), *p = p_.data(), *q = q_.data();
    for (; count > 0; --count) {
      exchange_.exchange();
      processor_.for_each(cells.rows(), cells.nx, [=] APPS_CALLABLE(std::int64_t row, std::int64_t k) {
        const std::int64_t i = cells.row(row) + k;
        q[i] = laplace(p, i, cells.width(), cells.plane());
      });
      const double alpha = ratio(rr_, dot(p, q));  // the ghosts of q are zero, so that those of p do not count
      processor_.for_each(cells.with_ghosts(), [=] APPS_CALLABLE(std::int64_t i) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
      });
      const double rr = dot(r, r), beta = ratio(rr, rr_);
      processor_.for_each(cells.with_ghosts(), [=] APPS_CALLABLE(std::int64_t i) { p[i] = r[i] + beta * p[i]; });
      rr_ = rr;
    }
    processor_.wait();
  }
  // |r| / |b|
  double residual() const { return std::sqrt(rr_ / first_rr_); }

  // The largest difference from the known solution.
  double error() {
    const KnownSolution known{grid_.shape[0], grid_.shape[1], grid_.shape[2]};
    const std::int64_t z0 = box_.first[0], y0 = box_.first[1], x0 = box_.first[2];
    const Cells cells = cells_;
    const double* x = x_.data();
    return processor_.max(cells.rows() * cells.nx, [=] APPS_CALLABLE(std::int64_t cell) {
      const std::int64_t row = cell / cells.nx, k = cell % cells.nx;
      const double off = x[cells.row(row) + k] - known(z0 + row / cells.ny, y0 + row % cells.ny, x0 + k);
      return off == off ? (off < 0 ? -off : off) : differs;
    });
  }
  // The largest difference between what is left and b minus the left side of x: the ghosts of all steps so far were
  // right if it is small.
  double mismatch() { return mismatch(r_.data()); }
  std::vector<double> solution() const {
    const std::vector<double> all = x_.values();
    std::vector<double> own;
    for (std::int64_t row = 0; row < cells_.rows(); ++row)
      own.insert(own.end(), all.begin() + cells_.row(row), all.begin() + cells_.row(row) + cells_.nx);
    return own;
  }

  double mismatch(const double* r) {
    exchange_x_.exchange();
    const RightSide b = right_side();
    const Cells cells = cells_;
    const double* x = x_.data();
    return processor_.max(cells.rows() * cells.nx, [=] APPS_CALLABLE(std::int64_t cell) {
      const std::int64_t row = cell / cells.nx, k = cell % cells.nx, i = cells.row(row) + k;
      const double left = b(row / cells.ny, row % cells.ny, k) - laplace(x, i, cells.width(), cells.plane());
      const double off = left - r[i];
      return off == off ? (off < 0 ? -off : off) : differs;
    });
  }
  RightSide right_side() const {
    return {{grid_.shape[0], grid_.shape[1], grid_.shape[2]}, box_.first[0], box_.first[1], box_.first[2]};
  }
  double dot(const double* a, const double* b) {
    return sum_of_ranks(
        group_, processor_.sum(cells_.with_ghosts(), [=] APPS_CALLABLE(std::int64_t i) { return a[i] * b[i]; }));
  }

 protected:
  waywiser::Group& group_;
  Processor processor_;
  waywiser::HaloGrid grid_;
  waywiser::GridBox box_;
  Cells cells_;
  Array<double> x_, r_, p_, q_;     // the solution, what is left, the direction, the left side of it
  Exchange exchange_, exchange_x_;  // of p; of x, always by the same variant
  double rr_ = 0, first_rr_ = 0;
};

}  // namespace apps
