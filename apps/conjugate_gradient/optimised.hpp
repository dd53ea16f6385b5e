#pragma once

#include <optional>

#include "apps/conjugate_gradient/conjugate_gradient.hpp"
#include "apps/fused.hpp"

namespace apps {

struct TwoSums {
  double first = 0, second = 0;

  APPS_CALLABLE friend TwoSums operator+(TwoSums a, TwoSums b) { return {a.first + b.first, a.second + b.second}; }
};

// w = the left side of r, in a part of the cells.
struct LeftSide {
  static constexpr int rows_at_once = 4;
  const double* r;
  double* w;
  Cells cells;
  std::int64_t z, y, x, rows_of_plane;

  APPS_CALLABLE void operator()(std::int64_t row, std::int64_t k) const {
    const std::int64_t i =
        (z + row / rows_of_plane + 1) * cells.plane() + (y + row % rows_of_plane + 1) * cells.width() + x + k + 1;
    w[i] = laplace(r, i, cells.width(), cells.plane());
  }
};

// The same for one cell, counted with ghosts; steady(): where nobody writes meanwhile.
struct LeftSideOf {
  static constexpr int rows_at_once = 4, blocks_at_once = 4;
  const double* r;
  double* w;
  Cells cells;

  APPS_CALLABLE void operator()(std::int64_t i) const {
    w[i] = laplace(r + i, cells.width(), cells.plane(), [](const double* from) { return *from; });
  }
  APPS_CALLABLE void steady(std::int64_t i) const { w[i] = laplace(r, i, cells.width(), cells.plane()); }
};

// All updates of one cell.
struct UpdateOf {
  static constexpr int blocks_at_once = 4;
  double *x, *r, *p, *q;
  const double* w;
  double alpha, beta;

  APPS_CALLABLE void operator()(std::int64_t i) const {
    p[i] = r[i] + beta * p[i];
    q[i] = w[i] + beta * q[i];
    x[i] += alpha * p[i];
    r[i] -= alpha * q[i];
  }
  APPS_CALLABLE void steady(std::int64_t i) const { (*this)(i); }
};

// The same method tuned by hand, in the form of Chronopoulos and Gear (1989): one reduction of two numbers for each
// iteration instead of two reductions, all updates of vectors in one loop, both sums in another, and the ghosts of r
// travel while the cells inside are computed. Here p is the direction, q its left side, and w that of
// r. Fused, the loop of the updates puts the outermost cells of r into the neighbours' ghosts, and that of the left
// side waits for them.
class OptimisedGradient : public ConjugateGradient {
 public:
  OptimisedGradient(waywiser::Group& group, waywiser::HaloGrid grid, int threads)
      : ConjugateGradient(group, std::move(grid), threads),
        parts_(parts_for<Processor>(box_.count)),
        w_(processor_, cells_.with_ghosts()),
        exchange_r_(group, processor_, face_partition(grid_, group.rank()), {r_.field()}) {}

  void use(const Way& way) {
    is_fused_ = way.is_fused();
    if (!is_fused_) return exchange_r_.use(way);
    if (!fused_) fused_.emplace(group_, processor_, grid_);
    fused_->use(way);
  }
  waywiser::HaloVariant variant() const noexcept { return exchange_r_.variant(); }

  void reset() {
    ConjugateGradient::reset();
    double *p = p_.data(), *q = q_.data();
    processor_.for_each(cells_.with_ghosts(), [=] APPS_CALLABLE(std::int64_t i) { p[i] = q[i] = 0; });
    if (is_fused_) begin_fused();
    const TwoSums sums = left_side();
    beta_ = 0;
    alpha_ = ratio(sums.first, sums.second);
  }
  void steps(std::int64_t count) {
    const Cells cells = cells_;
    for (; count > 0; --count) {
      const UpdateOf update{x_.data(), r(), p_.data(), q_.data(), w_.data(), alpha_, beta_};
      if (is_fused_)
        fused_->put_step(0, update);
      else
        processor_.for_each(cells.rows(), cells.nx,
                            [=] APPS_CALLABLE(std::int64_t row, std::int64_t k) { update(cells.row(row) + k); });
      const TwoSums sums = left_side();
      beta_ = ratio(sums.first, rr_);
      alpha_ = ratio(sums.first, sums.second - beta_ * sums.first / alpha_);
      rr_ = sums.first;
    }
    processor_.wait();
  }

  double mismatch() { return ConjugateGradient::mismatch(r()); }

  // w = the left side of r; the sums of r r and r w over all ranks.
  TwoSums left_side() {
    if (is_fused_) {
      fused_->wait_step(LeftSideOf{r(), w_.data(), cells_});
    } else {
      exchange_r_.start();
      apply(parts_.inner);
      exchange_r_.finish();
      for (const CellBox& part : parts_.outer) apply(part);
    }
    const Cells cells = cells_;
    const double *r = this->r(), *w = w_.data();
    const TwoSums all = processor_.sum(cells.rows(), cells.nx, [=] APPS_CALLABLE(std::int64_t row, std::int64_t k) {
      const std::int64_t i = cells.row(row) + k;
      return TwoSums{r[i] * r[i], r[i] * w[i]};
    });
    double sums[2] = {all.first, all.second};
    if (is_fused_) fused_->check();
    group_.all_reduce(std::span(sums), std::span(sums));
    return {sums[0], sums[1]};
  }

  // Its residual, copied to where neighbours reach it.
  void begin_fused() {
    const double* from = r_.data();
    double* to = r();
    processor_.for_each(cells_.with_ghosts(), [=] APPS_CALLABLE(std::int64_t i) { to[i] = from[i]; });
    processor_.wait();
    group_.barrier();
    fused_->begin();
  }

 private:
  double* r() { return is_fused_ ? fused_->array(0) : r_.data(); }
  void apply(const CellBox& part) {
    processor_.for_each(
        part.count[0] * part.count[1], part.count[2],
        LeftSide{r_.data(), w_.data(), cells_, part.first[0], part.first[1], part.first[2], part.count[1]});
  }

  CellParts parts_;
  Array<double> w_;
  Exchange exchange_r_;
  std::optional<FusedField<double, 3>> fused_;  // of r, once it is in use
  bool is_fused_ = false;
  double alpha_ = 0, beta_ = 0;
};

}  // namespace apps
