#include "apps/navier_stokes/multigrid/multigrid.hpp"

#include <utility>

namespace flow {
namespace {

constexpr std::int64_t coarsest_cells = 512;        // of all ranks; a level of so many is solved directly
constexpr std::int64_t most_coarsest_cells = 1024;  // one of so many too, if the next one would be little smaller
constexpr double little_smaller = 0.6;
constexpr double over_correction = 1.6;  // of 1 to 1.8 the best on perturbed squares, near it on a bend
constexpr int passes = 2;                // of pairing, so that a level has a quarter of the cells of the one above

void copy(apps::Processor& processor, const double* from, double* to, std::int64_t count) {
  processor.for_each(count, [=] APPS_CALLABLE(std::int64_t i) { to[i] = from[i]; });
}

}  // namespace

Multigrid::Multigrid(Exchanges& exchanges, LevelRows finest, bool singular)
    : exchanges_(exchanges), recording_(exchanges.processor()) {
  const auto in_all = [&](std::int64_t mine) {
    return static_cast<std::int64_t>(exchanges.sum<1>({static_cast<double>(mine)})[0]);
  };
  LevelRows present = std::move(finest);
  sizes_.push_back(in_all(present.rows.rows()));
  for (;;) {
    levels_.push_back(std::make_unique<MultigridLevel>(exchanges, present));
    if (sizes_.back() <= coarsest_cells) break;
    const std::vector<Index> coarse_of = aggregated(present.rows, passes);
    LevelRows next = coarser(exchanges.group(), present, coarse_of);
    const std::int64_t size = in_all(next.rows.rows());
    const double share = static_cast<double>(size) / static_cast<double>(sizes_.back());
    if (share == 1 || (share > little_smaller && sizes_.back() <= most_coarsest_cells)) break;
    levels_.back()->set_coarse(coarse_of, next.rows.rows());
    sizes_.push_back(size);
    present = std::move(next);
  }
  coarsest_ = std::make_unique<CoarsestLevel>(exchanges, present, singular);
}

void Multigrid::apply(const double* r, double* z) {
  const auto whole = [&] {
    MultigridLevel& finest = *levels_.front();
    copy(exchanges_.processor(), r, finest.right.data(), finest.right.size());
    cycle(0);
    copy(exchanges_.processor(), finest.solution.data(), z, finest.right.size());
  };
  if (exchanges_.timed() || !exchanges_.by_kernels()) return whole();
  const Recorded wanted{r, z, exchanges_.choices()};
  if (recorded_ != wanted) recording_.forget();
  recorded_ = wanted;
  recording_.run(whole);
}

void Multigrid::cycle(std::size_t number) {
  MultigridLevel& level = *levels_[number];
  if (number + 1 == levels_.size()) return coarsest_->solve(level.right, level.solution.data());
  MultigridLevel& coarse = *levels_[number + 1];
  level.smooth(exchanges_, true);
  exchanges_.fill(level.ghosts);
  level.compute_rest();
  level.restrict_rest(coarse);
  cycle(number + 1);
  level.correct(coarse, over_correction);
  level.smooth(exchanges_, false);
}

}  // namespace flow
