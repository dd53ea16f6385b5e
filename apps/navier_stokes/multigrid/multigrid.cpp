#include "apps/navier_stokes/multigrid/multigrid.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "apps/navier_stokes/multigrid/whole_level.hpp"

namespace flow {
namespace {

constexpr std::int64_t coarsest_cells = 512;        // a level of so many is solved directly
constexpr std::int64_t most_coarsest_cells = 1024;  // one of so many too, if the next one would be little smaller
constexpr double little_smaller = 0.6;
constexpr double over_correction = 1.6;  // of 1 to 1.8 the best on perturbed squares, near it on a bend
constexpr int passes = 2;                // of pairing, so that a level has a quarter of the cells of the one above

}  // namespace

Multigrid::Multigrid(Exchanges& exchanges, LevelRows finest, bool singular, std::int64_t whole_cells)
    : exchanges_(exchanges), replay_(exchanges) {
  waywiser::Group& group = exchanges.group();
  const auto in_all = [&](const LevelRows& level) {
    return static_cast<std::int64_t>(exchanges.sum<1>({static_cast<double>(level.rows.rows())})[0]);
  };
  bool alone = group.size() == 1;
  std::vector<int> rank_of;  // where this rank has rows of others
  LevelRows present = std::move(finest), next;
  std::vector<Index> coarse_of;
  sizes_.push_back(in_all(present));
  // The next level, and whether it is little smaller.
  const auto coarsen = [&] {
    coarse_of = aggregated(present.rows, passes, rank_of);
    next = coarser(group, present, coarse_of);
    const std::int64_t size = alone ? next.rows.rows() : in_all(next);
    const double share = static_cast<double>(size) / static_cast<double>(sizes_.back());
    return std::pair(size, share == 1 || (share > little_smaller && sizes_.back() <= most_coarsest_cells));
  };
  for (;;) {
    levels_.push_back(std::make_unique<MultigridLevel>(exchanges, present, alone));
    MultigridLevel& level = *levels_.back();
    if (first_whole_ > 0 && first_whole_ + 1 == levels_.size())
      gathering_ = exchanges.add(gathering(group.rank(), rows_), level.right, 1);
    if (alone && sizes_.back() <= coarsest_cells) break;
    auto [size, stuck] = coarsen();
    if (stuck && !rank_of.empty()) {
      rank_of.clear();
      std::tie(size, stuck) = coarsen();
    }
    if (alone && stuck) break;
    if (!alone && (size <= std::max(whole_cells, coarsest_cells) || stuck)) {
      WholeLevel whole = whole_level(group, next);
      for (Index& each : coarse_of) each = whole.place[at(each)];
      level.set_coarse(coarse_of, whole.first, next.rows.rows());
      next = std::move(whole.level);
      rank_of = std::move(whole.rank_of);
      rows_ = std::move(whole.rows);
      first_whole_ = levels_.size();
      alone = true;
    } else {
      coarse_of.resize(at(present.rows.rows()));
      level.set_coarse(coarse_of, 0, next.rows.rows());
      std::vector<int> coarse_rank_of(rank_of.empty() ? 0 : at(size));
      for (std::size_t i = 0; i < rank_of.size(); ++i) coarse_rank_of[at(coarse_of[i])] = rank_of[i];
      rank_of = std::move(coarse_rank_of);
    }
    sizes_.push_back(size);
    present = std::move(next);
  }
  coarsest_ = std::make_unique<CoarsestLevel>(exchanges.processor(), present.rows, singular);
}

const double* Multigrid::apply(const double* r) {
  MultigridLevel& finest = *levels_.front();
  replay_.run({r, finest.solution()}, [&] {
    cycle(0, r);
    finest.fill_solution();
  });
  return finest.solution();
}

void Multigrid::cycle(std::size_t number, const double* b) {
  MultigridLevel& level = *levels_[number];
  if (number + 1 == levels_.size()) return coarsest_->solve(b, level.solution());
  MultigridLevel& coarse = *levels_[number + 1];
  level.smooth_zero(b);
  level.restrict_rest(b, coarse);
  if (gathering_ && number + 1 == first_whole_) exchanges_.fill(*gathering_);
  cycle(number + 1, coarse.right.data());
  level.correct(coarse, over_correction);
  level.smooth(b);
}

}  // namespace flow
