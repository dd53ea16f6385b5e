#include "waywiser/measure/campaign.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/admission.hpp"
#include "waywiser/measure/contention.hpp"
#include "waywiser/measure/size_grid.hpp"
#include "waywiser/measure/survey.hpp"
#include "waywiser/measure/switches.hpp"

namespace waywiser {
namespace {

// Fractions of the budget, from the start: parameters, the grid, all pairs one by one, a repetition of the grid, sizes
// around switches; further repetitions use the rest.
constexpr double search_share = 0.2, grid_share = 0.6, survey_share = 0.66, second_share = 0.77, refine_share = 0.9;
constexpr int most_passes = 8, most_looks = 4;
constexpr double close = 2;  // times the fastest: paths that another look is for

// Disturbed points are measured again.
std::vector<Series> calm_only(std::vector<Series> all) {
  for (Series& series : all) std::erase_if(series.points, [](const Point& point) { return !point.calm(); });
  return all;
}

// Paths that are compared at one size.
struct GridCell {
  std::size_t work;
  Operation operation;
  Bytes bytes;
  auto operator<=>(const GridCell&) const = default;
};

class Campaign {
 public:
  Campaign(const std::vector<Subject>& subjects, Meter& meter, const CampaignOptions& options, const Profile* previous,
           const ProgressCallback& progress)
      : meter_(meter),
        options_(options),
        previous_(previous),
        watch_(meter, options.budget_seconds, progress, [this] { return result(); }),
        comparer_(meter, found_.points, options.seed, [this] { return watch_.keep_on(); }),
        admission_(meter, options, previous, found_, comparer_, watch_),
        survey_(meter, options, previous, watch_) {
    if (previous != nullptr) {
      found_.points.add(calm_only(previous->series));
      found_.searched.add(previous->searched);
      for (const Rejected& entry : previous->rejected)
        found_.points.reject(entry.path, entry.operation, entry.bytes, entry.reason);
    }
    for (const Subject& subject : subjects)
      found_.work.push_back({&subject, {}, {}, operations_of(subject.pair_class)});
  }

  Profile run() {
    try {
      const std::vector<GridCell> grid = grid_groups();
      for (const Work& work : found_.work) watch_.expect(admission_.steps(work));
      watch_.expect(static_cast<int>(2 * grid.size()));
      for (Work& work : found_.work) admission_.admit(work, search_share);
      measure_grid(grid);
      survey_.run(found_, survey_share);
      for (const GridCell& group : grid) {
        look_again(group, second_share);
        watch_.finish_step();
      }
      refine();
      while (look_at_doubtful()) {
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) throw;
      watch_.stop();
    }
    return result();
  }

 private:
  // The comparisons of this run: how often each was made, and whether the last two agreed.
  struct Looks {
    int count = 1;
    bool agreed = false;
  };

  // `loaded` with one pair is `streaming`.
  std::vector<Operation> operations_of(const PairClass& pair_class) const {
    std::vector<Operation> chosen;
    for (const Operation operation : operations)
      if (std::count(options_.operations.begin(), options_.operations.end(), operation) &&
          (operation != Operation::loaded || pair_class.members.size() > 1))
        chosen.push_back(operation);
    return chosen;
  }

  // `loaded` comes last: with many GPUs it starts a process for each, which takes a short budget by itself.
  std::vector<GridCell> grid_groups() const {
    std::vector<GridCell> groups;
    for (const Bytes bytes : grid_sizes(options_))
      for (const Operation operation : operations)
        for (std::size_t i = 0; i < found_.work.size(); ++i)
          if (std::ranges::count(found_.work[i].operations, operation)) groups.push_back({i, operation, bytes});
    std::ranges::stable_partition(groups, [](const GridCell& group) { return group.operation != Operation::loaded; });
    return groups;
  }

  Effort effort(Bytes bytes, Seconds share) const {
    Effort effort;
    effort.most = options_.quick ? 11 : 31;
    if (bytes >= (64u << 20)) effort.least = 3;
    effort.share = share;
    return effort;
  }

  void measure_grid(const std::vector<GridCell>& groups) {
    for (std::size_t i = 0; i < groups.size() && !watch_.stopped(); ++i) {
      const auto left = static_cast<double>(groups.size() - i);
      const std::vector<Path>& paths = found_.work[groups[i].work].paths;
      const bool all = !options_.quick && groups[i].bytes < large_;
      measure(groups[i], all ? paths : promising(groups[i]), grid_share, 2 * watch_.left(grid_share) / left);
      watch_.finish_step();
    }
  }

  std::vector<Path> promising(const GridCell& group) const {
    return promising_at(found_.points, found_.work[group.work].paths, group.operation, group.bytes, large_);
  }

  void measure(const GridCell& group, const std::vector<Path>& paths, double until, Seconds share) {
    const auto& [number, operation, bytes] = group;
    if (std::ranges::none_of(paths, [&](const Path& path) { return comparer_.missing(path, operation, bytes); }))
      return;
    const Effort wanted = effort(bytes, share);
    if (watch_.left(until) <= comparer_.least_seconds(paths, operation, bytes, wanted)) {
      ++left_out_;
      return;
    }
    if (!watch_.begin(found_.work[number].subject->pair_class, operation, bytes)) return;
    comparer_.compare(paths, operation, bytes, wanted);
    looks_.try_emplace(group);
  }

  // Some time later, for a disturbance may last longer than a comparison. What earlier runs measured stays as it is.
  bool look_again(const GridCell& group, double until) {
    const auto& [number, operation, bytes] = group;
    const auto looks = looks_.find(group);
    if (looks == looks_.end() || watch_.stopped()) return false;
    const std::vector<Path> paths = close_at(found_.points, found_.work[number].paths, operation, bytes, close);
    const Effort wanted = effort(bytes, watch_.left(until) / 20);
    if ((paths.size() < 2 && !disturbed(group)) ||
        watch_.left(until) <= comparer_.again_seconds(paths, operation, bytes, wanted))
      return false;
    if (!watch_.begin(found_.work[number].subject->pair_class, operation, bytes)) return false;
    looks->second = {looks->second.count + 1, comparer_.compare_again(paths, operation, bytes, wanted)};
    return true;
  }

  void refine() {
    for (int pass = 0; pass < most_passes && !watch_.stopped(); ++pass)
      for (std::size_t i = 0; i < found_.work.size(); ++i)
        for (const Operation operation : found_.work[i].operations)
          for (const Bytes bytes : switch_sizes(found_.points, found_.work[i].paths, operation))
            refine_at({i, operation, bytes});
  }

  void refine_at(const GridCell& group) {
    watch_.expect(1);
    measure(group, promising(group), refine_share, watch_.left(refine_share) / 4);
    watch_.finish_step();
  }

  // One more look wherever a larger message took less, then wherever looks did not agree. False when there is nothing
  // left to do.
  bool look_at_doubtful() {
    std::vector<GridCell> again;
    for (const auto& [group, looks] : looks_)
      if (looks.count < most_looks && doubtful(group)) again.push_back(group);
    for (const auto& [group, looks] : looks_)
      if (looks.count < most_looks && !looks.agreed) again.push_back(group);
    watch_.expect(static_cast<int>(again.size()));
    int looked = 0;
    for (const GridCell& group : again) {
      looked += look_again(group, 1);
      watch_.finish_step();
    }
    return looked > 0;
  }

  bool disturbed(const GridCell& group) const {
    return std::ranges::any_of(found_.work[group.work].paths, [&](const Path& path) {
      const Point* point = found_.points.find(path, group.operation, group.bytes);
      return point != nullptr && !point->calm();
    });
  }

  bool doubtful(const GridCell& group) const {
    if (disturbed(group)) return true;
    const std::vector<Bytes> sizes = doubtful_sizes(found_.points, found_.work[group.work].paths, group.operation);
    return std::ranges::count(sizes, group.bytes) != 0;
  }

  Profile result() const {
    Profile profile = assemble(found_, meter_, previous_);
    survey_.enter(profile);
    if (previous_ != nullptr) profile.collectives = previous_->collectives;
    profile.state = {{"interrupted", watch_.stopped()},           {"quick", options_.quick},
                     {"budget_seconds", options_.budget_seconds}, {"seconds", watch_.elapsed()},
                     {"comparisons_left_out", left_out_},         {"notes", comparer_.notes()}};
    return profile;
  }

  Meter& meter_;
  const CampaignOptions& options_;
  const Profile* previous_;
  const Bytes large_ = Bytes{options_.quick ? 4u : 64u} << 20;  // from here on only promising paths
  Findings found_;
  Watch watch_;
  Comparer comparer_;
  Admission admission_;
  Survey survey_;
  std::map<GridCell, Looks> looks_;
  int left_out_ = 0;
};

}  // namespace

Profile run_campaign(const std::vector<Subject>& subjects, Meter& meter, const CampaignOptions& options,
                     const Profile* previous, const ProgressCallback& progress) {
  return Campaign(subjects, meter, options, previous, progress).run();
}

}  // namespace waywiser
