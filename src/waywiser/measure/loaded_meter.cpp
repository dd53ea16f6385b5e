#include "waywiser/measure/loaded_meter.hpp"

#include <algorithm>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/rotation.hpp"
#include "waywiser/measure/start_barrier.hpp"

namespace waywiser {
namespace {

constexpr unsigned most_processes = 16;
constexpr Bytes most_cached = 512ull << 20;  // of one pair

}  // namespace

int most_pairs_at_once(unsigned cpus) { return static_cast<int>(std::clamp(cpus / 2, 2u, most_processes)); }

LoadedMeter::LoadedMeter(const Platform& platform, MakeMeter make, std::vector<PairClass> classes, int most)
    : platform_(platform),
      make_(std::move(make)),
      classes_(std::move(classes)),
      most_(static_cast<std::size_t>(std::max(1, most))) {
  meters_.push_back(make_());
}

std::optional<std::string> LoadedMeter::why_unavailable(const Path& path) {
  return meters_.front()->why_unavailable(path);
}

Limit LoadedMeter::limit(const Path& path, Operation operation) const {
  return meters_.front()->limit(path, operation);
}

std::vector<pid_t> LoadedMeter::peers() const {
  std::vector<pid_t> peers;
  for (const auto& meter : meters_) peers.push_back(meter->peer());
  return peers;
}

std::vector<Path> LoadedMeter::together(const Path& path) const {
  const PairClass* all = class_of(classes_, path);
  if (all == nullptr) return {path};
  std::vector<Path> paths;
  for (const auto& [source, destination] : pairs_together(*all, {path.source, path.destination}, most_))
    paths.push_back(source == path.source && destination == path.destination ? path
                                                                             : for_pair(path, source, destination));
  return paths;
}

// The size limit of each buffer of a pair, so that all buffers together leave half of the memory free. A pair has one
// send and one receive buffer at each end.
Bytes LoadedMeter::room_of_pair(const std::vector<Path>& paths) const {
  std::map<Place, Bytes> buffers;
  for (const Path& path : paths)
    for (const Place place : {path.source, path.destination}) buffers[place] += 2;
  Bytes room = Bytes{1} << 62;
  for (const auto& [place, count] : buffers) {
    const auto [entry, fresh] = free_at_start_.try_emplace(place, 0);
    if (fresh) entry->second = platform_.free_memory(place);
    room = std::min(room, entry->second / 2 / count);
  }
  return room;
}

Bytes LoadedMeter::largest(const Path& path) const {
  const std::vector<Path> paths = together(path);
  const Bytes alone = meters_.front()->largest(path);
  return paths.size() == 1 ? alone : std::min(alone, room_of_pair(paths));
}

const std::vector<SpinCpus>& LoadedMeter::spin_cpus_of(const std::vector<Path>& paths) {
  std::string key;
  for (const Path& path : paths) key += pair_text(path) + " ";
  const auto [entry, fresh] = spin_cpus_.try_emplace(key, paths.size());
  if (!fresh || simulated()) return entry->second;
  std::vector<SpinCpuChoices> choices;
  for (const Path& path : paths) choices.push_back(spin_cpu_choices(path));
  return entry->second = choose_spin_cpus(choices);
}

void LoadedMeter::make_ready(const std::vector<Path>& paths, const PairRun& run) {
  while (meters_.size() < paths.size()) meters_.push_back(make_());
  const Bytes room = room_of_pair(paths);
  if (run.capacity() > room)
    throw Error(ErrorKind::unavailable, "half of the free memory is too little for " + std::to_string(paths.size()) +
                                            " pairs at once with transfers of " + format_bytes(run.bytes) + " bytes");
  for (const auto& meter : meters_) meter->keep_at_most(std::min(most_cached, room));
}

std::vector<LoadedMeter::Both> LoadedMeter::move(const std::vector<Path>& paths, const PairRun& run) {
  make_ready(paths, run);
  const auto pairs = static_cast<int>(paths.size());
  turn_ += paths.size();  // no pattern twice
  const std::vector<SpinCpus>& spin_cpus = spin_cpus_of(paths);
  StartBarrier line(pairs);
  const TwoProcessMeter::Company company{pairs, [&](Deadline deadline) { line.wait(deadline); }};
  std::vector<Both> moved(paths.size());
  std::mutex one_by_one;
  // A failure of one pair ends all: the first one is the reason.
  const auto step = [&](auto work) {
    return [&line, work](int member) {
      if (line.called_off()) return;
      try {
        work(static_cast<std::size_t>(member));
      } catch (...) {
        line.call_off(std::current_exception());
      }
    };
  };
  const auto prepare = step([&](std::size_t pair) {
    meters_[pair]->start();
    const std::scoped_lock lock(one_by_one);
    meters_[pair]->prepare(paths[pair], run);
  });
  const auto go = step([&](std::size_t pair) {
    PairRun own = run;
    own.spin_cpus = spin_cpus[pair];
    if (run.seed != 0) own.seed = (turn_ - pair) << 16;
    moved[pair] = meters_[pair]->run(paths[pair], own, company);
  });
  threads_.run(pairs, go, prepare);
  line.rethrow();
  return moved;
}

std::optional<std::string> LoadedMeter::verify(const Path& path, Operation operation, Bytes bytes) {
  if (operation != Operation::loaded) return meters_.front()->verify(path, operation, bytes);
  PairRun once{operation, bytes, 1, 1};
  once.repetitions = static_cast<int>(once.slots());
  const std::vector<Path> paths = together(path);
  const std::vector<Both> moved = move(paths, once);
  for (std::size_t pair = 0; pair < paths.size(); ++pair) {
    const Bytes wrong = moved[pair].mine.mismatches + moved[pair].theirs.mismatches;
    if (wrong != 0)
      return std::to_string(wrong) + " of " + std::to_string(bytes * once.slots()) + " bytes arrived wrong (" +
             pair_text(paths[pair]) + ")";
  }
  return {};
}

// The time of this process's CPUs is that of all its threads, whichever pair looks at it.
Sample LoadedMeter::take(const Path& path, Operation operation, Bytes bytes, int repetitions) {
  if (operation != Operation::loaded) return meters_.front()->take(path, operation, bytes, repetitions);
  PairRun timed{operation, bytes, repetitions, 0};
  timed.repetitions = std::max(repetitions, at_least_in_flight(rotation(operation, timed.stride()), bytes));
  const std::vector<Both> moved = move(together(path), timed);
  Seconds began = moved.front().mine.began, ended = 0, here = 0, there = 0;
  std::string disturbed;
  for (const auto& [mine, theirs] : moved) {
    began = std::min(began, mine.began);
    ended = std::max(ended, mine.began + mine.seconds);
    here = std::max(here, mine.cpu_seconds);
    there += theirs.cpu_seconds;
    for (const std::string* why : {&mine.disturbed, &theirs.disturbed})
      if (!why->empty()) disturbed = *why;
  }
  const auto pairs = static_cast<double>(moved.size());
  return {(ended - began) / timed.repetitions, (here + there) / timed.repetitions / pairs, {}, disturbed};
}

}  // namespace waywiser
