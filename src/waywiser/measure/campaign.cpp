#include "waywiser/measure/campaign.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/comparison.hpp"
#include "waywiser/measure/search.hpp"
#include "waywiser/measure/size_grid.hpp"
#include "waywiser/measure/switches.hpp"
#include "waywiser/measure/watch.hpp"

namespace waywiser {
namespace {

// Of the budget, from the start; sizes around switches take the rest.
constexpr double search_share = 0.2, grid_share = 0.8, look_again_share = 0.9;
constexpr int most_passes = 8;

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
        watch_(meter, options.budget_seconds, progress, [this] { return assemble(); }),
        comparer_(meter, store_, options.seed, [this] { return watch_.keep_on(); }) {
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
      look_again(look_again_share);
      refine();
      look_again(1);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::interrupted) throw;
      watch_.stop();
    }
    return assemble();
  }

 private:
  struct Group {
    const Work* work;
    Operation operation;
    Bytes bytes;
  };

  bool begin(const PairClass& pair_class, Operation operation, Bytes bytes) {
    const auto& [source, destination] = pair_class.members.front();
    Path pair{{}, source, destination, pair_class.processes, {}};
    return watch_.begin(pair_text(pair) + " " + std::string(name(operation)) + " " + format_bytes(bytes));
  }

  Effort effort(Bytes bytes, Seconds share) const {
    Effort effort;
    effort.most = options_.quick ? 15 : 41;
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
        watch_.expect(
            static_cast<int>(expand(family).size() > 1 ? probes().size() * search_operations(work).size() : 0));
    for (Work& work : work_) watch_.expect(static_cast<int>(grid_sizes(options_).size() * work.operations.size()));
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
        watch_.finish_step();
      }
    std::vector<Path> survivors;
    for (const std::size_t i : cover(times, options_.quick ? 2 : 4)) survivors.push_back(paths[i]);
    if (survivors.empty()) survivors.push_back(paths[paths.size() / 2]);
    return survivors;
  }

  void search_at(const Work& work, const std::vector<Path>& paths, Operation operation, Bytes bytes) {
    const bool known = std::any_of(paths.begin(), paths.end(),
                                   [&](const Path& path) { return searched_.find(path, operation, bytes) != nullptr; });
    if (known || watch_.left(search_share) <= 0 || !begin(work.subject->pair_class, operation, bytes)) return;
    comparer_.search(paths, operation, bytes, searched_);
  }

  // First use, unless it is known.
  bool open(const Path& path) {
    if (!watch_.keep_on()) return true;
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
    for (std::size_t i = 0; i < groups.size() && !watch_.stopped(); ++i) {
      if (anything_missing(groups[i])) {
        const auto left = static_cast<double>(groups.size() - i);
        measure(groups[i], grid_share, 2 * watch_.left(grid_share) / left);
      }
      watch_.finish_step();
    }
  }

  void measure(const Group& group, double budget_share, Seconds share) {
    const Effort wanted = effort(group.bytes, share);
    const Seconds least = comparer_.least_seconds(group.work->paths, group.operation, group.bytes, wanted);
    if (watch_.left(budget_share) <= least) {
      ++left_out_;
      return;
    }
    if (!begin(group.work->subject->pair_class, group.operation, group.bytes)) return;
    comparer_.compare(group.work->paths, group.operation, group.bytes, wanted);
    measured_.insert({group.work, group.operation, group.bytes});
  }

  // What earlier runs measured stays as it is.
  void look_again(double budget_share) {
    for (const Work& work : work_)
      for (const Operation operation : work.operations)
        for (const Bytes bytes : doubtful_sizes(store_, work.paths, operation)) {
          const auto found = measured_.find({&work, operation, bytes});
          if (found == measured_.end() || watch_.stopped()) continue;
          const Effort wanted = effort(bytes, watch_.left(budget_share) / 20);
          const Seconds least = comparer_.again_seconds(work.paths, operation, bytes, wanted);
          if (watch_.left(budget_share) <= least || !begin(work.subject->pair_class, operation, bytes)) continue;
          comparer_.compare_again(work.paths, operation, bytes, wanted);
        }
  }

  // ---- around the switches ----
  void refine() {
    for (int pass = 0; pass < most_passes && !watch_.stopped(); ++pass)
      for (const Work& work : work_)
        for (const Operation operation : work.operations)
          for (const Bytes bytes : switch_sizes(store_, work.paths, operation)) refine_at(work, operation, bytes);
  }

  void refine_at(const Work& work, Operation operation, Bytes bytes) {
    watch_.expect(1);
    measure({&work, operation, bytes}, 1, watch_.left(1) / 4);
    watch_.finish_step();
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
    profile.state = {{"interrupted", watch_.stopped()},           {"quick", options_.quick},
                     {"budget_seconds", options_.budget_seconds}, {"seconds", watch_.elapsed()},
                     {"comparisons_left_out", left_out_},         {"notes", comparer_.notes()}};
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
  Watch watch_;
  int left_out_ = 0;
  PointStore store_, searched_;
  std::set<std::tuple<const Work*, Operation, Bytes>> measured_;  // by this run
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
