#include "waywiser/measure/campaign.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/comparison.hpp"
#include "waywiser/measure/search.hpp"
#include "waywiser/measure/size_grid.hpp"

namespace waywiser {
namespace {

constexpr double search_share = 0.2, grid_share = 0.9;  // of the budget; refinement takes the rest
constexpr Seconds progress_interval = 0.1, save_interval = 20;
constexpr int most_passes = 8;
constexpr Bytes smallest_refined = 64;
constexpr double close_sizes = 1.25;    // neighbours of this ratio tell enough about a switch between them,
constexpr double closest_sizes = 1.05;  // and of this one about a cliff:
constexpr double cliff = 1.5;           // a switch of paths whose times have this ratio

// A class of pairs with the paths that are measured for it.
struct Work {
  const Subject* subject;
  std::vector<Path> paths;     // survivors, in the order of enumeration
  std::vector<Path> searched;  // lost the search
  std::vector<Operation> operations;
};

bool contains(const std::vector<Path>& paths, const Path& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

class Campaign {
 public:
  Campaign(const std::vector<Subject>& subjects, Meter& meter, const CampaignOptions& options, const Profile* previous,
           const ProgressCallback& progress)
      : meter_(meter),
        options_(options),
        previous_(previous),
        progress_(progress),
        start_(meter.now()),
        comparer_(meter, store_, options.seed, [this] { return keep_on(); }) {
    if (previous != nullptr) {
      store_.add(previous->series);
      searched_.add(previous->searched);
      for (const Rejected& entry : previous->rejected)
        store_.reject(entry.path, entry.operation, entry.bytes, entry.reason);
    }
    for (const Subject& subject : subjects) work_.push_back({&subject, {}, {}, operations_of(subject.pair_class)});
  }

  Profile run() {
    try {
      search_all();
      measure_grid();
      refine();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) throw;
      stopped_ = true;
    }
    return assemble();
  }

 private:
  struct Group {
    const Work* work;
    Operation operation;
    Bytes bytes;
  };

  // ---- time and progress ----
  Seconds elapsed() const { return meter_.now() - start_; }
  Seconds until(double share) const { return options_.budget_seconds * share - elapsed(); }

  bool keep_on() {
    if (stopped_ || !progress_ || meter_.now() - reported_ < progress_interval) return !stopped_;
    reported_ = meter_.now();
    const Seconds pace = done_ > 0 ? elapsed() / done_ * (total_ - done_) : until(1);
    const Seconds left = std::clamp(std::min(pace, until(1)), 0.0, options_.budget_seconds);
    stopped_ = !progress_({done_, total_, left, label_, so_far()});
    return !stopped_;
  }

  // Every save_interval: so that a crash costs no more than that.
  std::optional<Profile> so_far() {
    if (meter_.now() - saved_ < save_interval) return std::nullopt;
    saved_ = meter_.now();
    return assemble();
  }

  bool begin(const PairClass& pair_class, Operation operation, Bytes bytes) {
    const auto& [source, destination] = pair_class.members.front();
    Path pair{{}, source, destination, pair_class.processes, {}};
    label_ = pair_text(pair) + " " + std::string(name(operation)) + " " + format_bytes(bytes);
    return keep_on();
  }

  Effort effort(Bytes bytes, Seconds share) const {
    Effort effort;
    effort.sample_seconds = options_.quick ? 0.0005 : 0.001;
    effort.most = options_.quick ? 11 : 31;
    if (bytes >= (64u << 20)) effort.least = 3;
    effort.share = share;
    return effort;
  }

  // `loaded` with one pair is `streaming`; a peer process serves one pair only.
  std::vector<Operation> operations_of(const PairClass& pair_class) const {
    std::vector<Operation> chosen;
    for (const Operation operation : operations)
      if (std::count(options_.operations.begin(), options_.operations.end(), operation) &&
          (operation != Operation::loaded || (pair_class.members.size() > 1 && pair_class.processes == 1)))
        chosen.push_back(operation);
    return chosen;
  }

  // ---- which parameters ----
  void search_all() {
    for (const Work& work : work_)
      for (const Family& family : work.subject->families)
        total_ += static_cast<int>(expand(family).size() > 1 ? probes().size() * search_operations(work).size() : 0);
    for (Work& work : work_) total_ += static_cast<int>(grid_sizes(options_).size() * work.operations.size());
    for (Work& work : work_)
      for (const Family& family : work.subject->families) admit(work, family);
  }

  std::vector<Bytes> probes() const { return probe_sizes(options_); }

  static std::vector<Operation> search_operations(const Work& work) {
    std::vector<Operation> chosen;
    for (const Operation operation : {Operation::latency, Operation::streaming})
      if (std::count(work.operations.begin(), work.operations.end(), operation)) chosen.push_back(operation);
    if (chosen.empty() && !work.operations.empty()) chosen.push_back(work.operations.front());
    return chosen;
  }

  // The paths of a family that can be used; the reason of the others once for the family.
  std::vector<Path> usable(const Family& family) {
    std::vector<Path> paths;
    std::optional<std::string> reason;
    for (const Path& path : expand(family)) {
      auto why = meter_.why_unavailable(path);
      if (!why) paths.push_back(path);
      if (why && !reason) reason = std::move(why);
    }
    if (paths.empty() && reason) unavailable_.push_back({family.base, *reason});
    return paths;
  }

  void admit(Work& work, const Family& family) {
    const std::vector<Path> paths = usable(family);
    std::vector<Path> survivors;
    for (const Path& path : paths)
      if (!store_.empty(path)) survivors.push_back(path);
    if (survivors.empty()) survivors = paths.size() > 1 ? search(work, paths) : paths;
    for (const Path& path : paths) {
      if (!contains(survivors, path))
        work.searched.push_back(path);
      else if (open(path))
        work.paths.push_back(path);
    }
  }

  std::vector<Path> search(const Work& work, const std::vector<Path>& paths) {
    std::vector<std::vector<Seconds>> times(paths.size());
    for (const Operation operation : search_operations(work))
      for (const Bytes bytes : probes()) {
        search_at(work, paths, operation, bytes);
        for (std::size_t i = 0; i < paths.size(); ++i) {
          const Point* point = searched_.find(paths[i], operation, bytes);
          times[i].push_back(point != nullptr && store_.rejection(paths[i], operation, bytes) == nullptr
                                 ? point->seconds
                                 : std::numeric_limits<Seconds>::infinity());
        }
        ++done_;
      }
    std::vector<Path> survivors;
    for (const std::size_t i : cover(times, options_.quick ? 2 : 4)) survivors.push_back(paths[i]);
    if (survivors.empty()) survivors.push_back(paths[paths.size() / 2]);
    return survivors;
  }

  void search_at(const Work& work, const std::vector<Path>& paths, Operation operation, Bytes bytes) {
    const bool known = std::any_of(paths.begin(), paths.end(),
                                   [&](const Path& path) { return searched_.find(path, operation, bytes) != nullptr; });
    if (known || until(search_share) <= 0 || !begin(work.subject->pair_class, operation, bytes)) return;
    comparer_.search(paths, operation, bytes, options_.quick ? 0.0002 : 0.0005, searched_);
  }

  // First use, unless it is known.
  bool open(const Path& path) {
    if (!keep_on()) return true;
    if (previous_ != nullptr)
      for (const FirstUse& entry : previous_->first_use)
        if (entry.path == path) {
          first_use_.push_back(entry);
          return true;
        }
    try {
      first_use_.push_back({path, std::max(0.0, meter_.first_use(path))});
      return true;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::interrupted) throw;
      unavailable_.push_back({path, error.what()});
      return false;
    }
  }

  // ---- the grid of sizes ----
  bool anything_missing(const Group& group) const {
    return std::any_of(group.work->paths.begin(), group.work->paths.end(),
                       [&](const Path& path) { return comparer_.missing(path, group.operation, group.bytes); });
  }

  void measure_grid() {
    std::vector<Group> groups;
    for (const Bytes bytes : grid_sizes(options_))
      for (const Operation operation : operations)
        for (const Work& work : work_)
          if (std::count(work.operations.begin(), work.operations.end(), operation))
            groups.push_back({&work, operation, bytes});
    for (std::size_t i = 0; i < groups.size() && !stopped_; ++i) {
      if (anything_missing(groups[i])) {
        const auto left = static_cast<double>(groups.size() - i);
        measure(groups[i], grid_share, 2 * until(grid_share) / left);
      }
      ++done_;
    }
  }

  void measure(const Group& group, double budget_share, Seconds share) {
    const Effort wanted = effort(group.bytes, share);
    const Seconds least = comparer_.least_seconds(group.work->paths, group.operation, group.bytes, wanted);
    if (until(budget_share) <= least) {
      ++left_out_;
      return;
    }
    if (!begin(group.work->subject->pair_class, group.operation, group.bytes)) return;
    comparer_.compare(group.work->paths, group.operation, group.bytes, wanted);
  }

  // ---- around the switches ----
  void refine() {
    for (int pass = 0; pass < most_passes && !stopped_; ++pass)
      for (const Work& work : work_)
        for (const Operation operation : work.operations)
          for (const Bytes bytes : switch_sizes(work, operation)) refine_at(work, operation, bytes);
  }

  void refine_at(const Work& work, Operation operation, Bytes bytes) {
    ++total_;
    measure({&work, operation, bytes}, 1, until(1) / 4);
    ++done_;
  }

  // Half way between neighbouring sizes at which different paths are the fastest, down to a gap that is small enough;
  // smaller still where a cliff makes the wrong path expensive. So a finished profile has nothing left to refine.
  std::vector<Bytes> switch_sizes(const Work& work, Operation operation) const {
    const std::map<Bytes, Path> winners = fastest_paths(work, operation);
    std::vector<Bytes> sizes;
    for (auto left = winners.begin(); left != winners.end() && std::next(left) != winners.end(); ++left) {
      const auto right = std::next(left);
      const Bytes middle = middle_size(left->first, right->first);
      if (left->second == right->second || middle <= left->first || right->first <= smallest_refined) continue;
      const double gap = static_cast<double>(right->first) / static_cast<double>(left->first);
      if (gap > close_sizes ||
          (gap > closest_sizes && steep(left->second, right->second, operation, left->first, right->first)))
        sizes.push_back(middle);
    }
    return sizes;
  }

  std::map<Bytes, Path> fastest_paths(const Work& work, Operation operation) const {
    std::map<Bytes, std::pair<Seconds, const Path*>> best;
    for (const Path& path : work.paths)
      for (const Point& point : store_.points(path, operation)) {
        const auto [entry, fresh] = best.try_emplace(point.bytes, point.seconds, &path);
        if (!fresh && point.seconds < entry->second.first) entry->second = {point.seconds, &path};
      }
    std::map<Bytes, Path> winners;
    for (const auto& [bytes, entry] : best) winners.emplace(bytes, *entry.second);
    return winners;
  }

  // Whether keeping to the winner of the other end would cost much at either end.
  bool steep(const Path& left_winner, const Path& right_winner, Operation operation, Bytes left, Bytes right) const {
    const auto loss = [&](const Path& loser, const Path& winner, Bytes bytes) {
      const Point* slow = store_.find(loser, operation, bytes);
      const Point* fast = store_.find(winner, operation, bytes);
      return slow == nullptr || fast == nullptr ? INFINITY : slow->seconds / fast->seconds;
    };
    return loss(right_winner, left_winner, left) > cliff || loss(left_winner, right_winner, right) > cliff;
  }

  // ---- the result ----
  Profile assemble() {
    Profile profile;
    for (const Work& work : work_) {
      profile.classes.push_back(work.subject->pair_class);
      for (const Path& path : work.paths) add_series(profile.series, store_, path);
      for (const Path& path : work.searched) add_series(profile.searched, searched_, path);
    }
    profile.first_use = first_use_;
    profile.unavailable = unavailable_;
    profile.rejected = store_.rejected();
    profile.simulated = meter_.simulated();
    profile.state = {
        {"interrupted", stopped_}, {"quick", options_.quick},           {"budget_seconds", options_.budget_seconds},
        {"seconds", elapsed()},    {"comparisons_left_out", left_out_}, {"notes", comparer_.notes()}};
    carry_over(profile);
    return profile;
  }

  void add_series(std::vector<Series>& list, const PointStore& from, const Path& path) const {
    for (const Operation operation : operations) {
      Series series{path, operation, from.points(path, operation), 0, {}};
      if (series.points.empty()) continue;
      const Limit limit = meter_.limit(path, operation);
      series.limit = limit.rate;
      series.limit_source = limit.source;
      list.push_back(std::move(series));
    }
  }

  // What an earlier run measured for pairs that this one was not asked for.
  void carry_over(Profile& profile) const {
    if (previous_ == nullptr) return;
    for (const PairClass& old : previous_->classes) {
      const auto same = [&](const Path& path) {
        return path.processes == old.processes && path.source == old.members.front().first &&
               path.destination == old.members.front().second;
      };
      if (std::any_of(work_.begin(), work_.end(), [&](const Work& work) {
            const PairClass& mine = work.subject->pair_class;
            return mine.processes == old.processes && mine.members.front() == old.members.front();
          }))
        continue;
      profile.classes.push_back(old);
      const auto carry = [&](auto& into, const auto& from) {
        std::copy_if(from.begin(), from.end(), std::back_inserter(into),
                     [&](const auto& entry) { return same(entry.path); });
      };
      carry(profile.series, previous_->series);
      carry(profile.searched, previous_->searched);
      carry(profile.first_use, previous_->first_use);
      carry(profile.unavailable, previous_->unavailable);
      carry(profile.rejected, previous_->rejected);
    }
  }

  Meter& meter_;
  const CampaignOptions& options_;
  const Profile* previous_;
  const ProgressCallback& progress_;
  Seconds start_;
  Seconds reported_ = -1e9;
  Seconds saved_ = meter_.now();
  bool stopped_ = false;
  int done_ = 0, total_ = 0, left_out_ = 0;
  std::string label_;
  PointStore store_, searched_;
  Comparer comparer_;
  std::vector<Work> work_;
  std::vector<FirstUse> first_use_;
  std::vector<Unavailable> unavailable_;
};

}  // namespace

Profile run_campaign(const std::vector<Subject>& subjects, Meter& meter, const CampaignOptions& options,
                     const Profile* previous, const ProgressCallback& progress) {
  return Campaign(subjects, meter, options, previous, progress).run();
}

}  // namespace waywiser
