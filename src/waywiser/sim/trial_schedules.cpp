#include "waywiser/sim/trial_schedules.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/collective_algorithm.hpp"

namespace waywiser::sim {
namespace {

constexpr int few_ranks = 256;  // below, every rank's schedule is made

bool of_whole(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce || operation == Collective::broadcast;
}

// The sides of a box of ranks, as equal as the divisors of `ranks` allow, largest first.
std::array<int, 3> box_of(int ranks) {
  std::array<int, 3> best{ranks, 1, 1};
  for (int z = 1; z * z * z <= ranks; ++z)
    for (int y = z; ranks % z == 0 && y * y <= ranks / z; ++y)
      if (ranks / z % y == 0 && ranks / z / y - z <= best[0] - best[2]) best = {ranks / z / y, y, z};
  return best;
}

// Six faces of a periodic box, with an equal part of the elements each.
std::vector<Neighbor> neighbors_of(int rank, int ranks, Bytes elements) {
  std::vector<Neighbor> found;
  const std::size_t face = static_cast<std::size_t>(std::max<Bytes>(1, elements / 6));
  int stride = 1, tag = 0;
  for (const int side : box_of(ranks)) {
    const int here = rank / stride % side;
    for (const int step : {1, side - 1}) {
      const int peer = rank + ((here + step) % side - here) * stride;
      const int opposite = tag ^ 1;
      if (side > 1) found.push_back({peer, face, face, tag, opposite});
      ++tag;
    }
    stride *= side;
  }
  return found;
}

bool same_but_shifted(const Schedule& first, const Schedule& other, int shift, int ranks) {
  if (first.steps.size() != other.steps.size()) return false;
  for (std::size_t i = 0; i < first.steps.size(); ++i) {
    const Step &a = first.steps[i], &b = other.steps[i];
    if (a.kind != b.kind || a.round != b.round || (a.peer < 0) != (b.peer < 0)) return false;
    if (a.peer >= 0 && (a.peer + shift) % ranks != b.peer) return false;
    const auto apart = [](std::size_t x, std::size_t y) { return x > y ? x - y : y - x; };
    if (apart(a.source.count, b.source.count) > 1 || apart(a.destination.count, b.destination.count) > 1) return false;
  }
  return true;
}

Schedule shifted(Schedule schedule, int shift, int ranks) {
  schedule.rank += shift;
  for (Step& step : schedule.steps)
    if (step.peer >= 0) step.peer = (step.peer + shift) % ranks;
  return schedule;
}

// The schedules of the first `period` ranks, if a few groups of so many ranks far apart have the same ones with shifted
// peers: then all have.
std::optional<std::vector<Schedule>> repeated(const std::function<Schedule(int)>& make, int ranks, int period) {
  if (ranks % period != 0) return {};
  std::vector<Schedule> first;
  for (int rank = 0; rank < period; ++rank) first.push_back(make(rank));
  const int groups = ranks / period;
  for (const int group : {1, 2, 3, groups / 3, groups / 2, groups - 1})
    for (int rank = 0; rank < period; ++rank) {
      const int shift = group % groups * period;
      if (!same_but_shifted(first[static_cast<std::size_t>(rank)], make(shift + rank), shift, ranks)) return {};
    }
  return first;
}

// Cuts all of them where all have the same rounds to cut; else none.
std::vector<Cut> cut_alike(std::vector<Schedule>& schedules, std::uint32_t most) {
  std::vector<Schedule> cut = schedules;
  std::vector<Cut> cuts = cut_repetition(cut.front(), most);
  for (std::size_t i = 1; i < cut.size(); ++i)
    if (cut_repetition(cut[i], most) != cuts) return {};
  schedules = std::move(cut);
  return cuts;
}

// The steps of all ranks if every node has as many as the one of two nodes inside that has fewer.
std::size_t expected_steps(const std::function<Schedule(int)>& make, int ranks, int ranks_of_node) {
  const int nodes = ranks / ranks_of_node;
  std::size_t least = SIZE_MAX;
  for (const int node : {std::min(1, nodes - 1), nodes / 2}) {
    std::size_t steps = 0;
    for (int i = 0; i < ranks_of_node; ++i) steps += make(node * ranks_of_node + i).steps.size();
    least = std::min(least, steps);
  }
  return least * static_cast<std::size_t>(nodes);
}

// Before hours of work: refuses what would be refused after it.
void check_steps(std::size_t steps, std::string_view algorithm) {
  if (steps > most_steps)
    throw Error(ErrorKind::unavailable, std::string(algorithm) + ": more than 50 million steps, too many to run");
}

}  // namespace

CollectiveCall call_of(const CollectiveTrial& trial, int ranks, int rank, int ranks_of_node) {
  CollectiveCall call;
  call.operation = trial.operation;
  call.rank = rank;
  call.ranks = ranks;
  call.chunk = static_cast<std::size_t>(trial.chunk / trial_element);
  const Bytes elements = std::max<Bytes>(1, trial.bytes / trial_element);
  call.count = static_cast<std::size_t>(
      of_whole(trial.operation) ? elements : std::max<Bytes>(1, elements / static_cast<Bytes>(ranks)));
  if (trial.operation == Collective::barrier) call.count = 0;
  if (trial.operation == Collective::neighbor_exchange) call.neighbors = neighbors_of(rank, ranks, elements);
  if (trial.algorithm == "hierarchical")
    for (int i = 0; i < ranks; ++i) call.machine_of.push_back(i / ranks_of_node);
  return call;
}

// If all ranks, or those of every node, have the same schedules with shifted peers, a few are made instead of
// thousands.
TrialSchedules schedules_of(const CollectiveTrial& trial, int ranks, int ranks_of_node) {
  const CollectiveAlgorithm& algorithm = find_algorithm(trial.operation, trial.algorithm);
  if (const auto why = algorithm.why_unavailable(call_of(trial, ranks, 0, ranks_of_node)))
    throw Error(ErrorKind::unavailable, std::string(algorithm.name) + ": " + *why);
  const auto make = [=, &algorithm](int rank) { return algorithm.make(call_of(trial, ranks, rank, ranks_of_node)); };
  if (ranks <= few_ranks) return {make, {}};
  auto first = repeated(make, ranks, 1);
  if (!first && ranks_of_node > 1) first = repeated(make, ranks, ranks_of_node);
  if (!first) {
    if (ranks >= ranks_of_node) check_steps(expected_steps(make, ranks, ranks_of_node), algorithm.name);
    return {make, {}};
  }
  std::vector<Cut> cuts;
  if (trial.most_rounds != 0 && trial.job_bytes == 0) cuts = cut_alike(*first, trial.most_rounds);
  std::size_t steps = 0;
  for (const Schedule& schedule : *first) steps += schedule.steps.size();
  const int period = static_cast<int>(first->size());
  check_steps(steps * static_cast<std::size_t>(ranks / period), algorithm.name);
  const auto by_shift = [first = std::move(*first), period, ranks](int rank) {
    return shifted(first[static_cast<std::size_t>(rank % period)], rank - rank % period, ranks);
  };
  return {by_shift, std::move(cuts)};
}

}  // namespace waywiser::sim
