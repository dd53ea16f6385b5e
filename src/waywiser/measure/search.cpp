#include "waywiser/measure/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace waywiser {
namespace {

constexpr double close_enough = 1.03;

std::vector<Contender*> active(Contest& contest) {
  std::vector<Contender*> found;
  for (Contender& contender : contest.contenders())
    if (contender.active) found.push_back(&contender);
  return found;
}

Seconds fastest(const std::vector<std::vector<Seconds>>& times, std::size_t probe) {
  Seconds best = std::numeric_limits<Seconds>::infinity();
  for (const auto& row : times) best = std::min(best, row[probe]);
  return best;
}

}  // namespace

void halve(Contest& contest, const std::function<bool()>& keep_on) {
  for (int rounds = 2;; rounds *= 2) {
    for (int i = 0; i < rounds && keep_on(); ++i) contest.round();
    std::vector<Contender*> left = active(contest);
    if (left.size() <= 2 || !keep_on()) return;
    // By the smallest sample: a disturbance can only add time, and there are few samples.
    std::stable_sort(left.begin(), left.end(),
                     [](const Contender* a, const Contender* b) { return a->least() < b->least(); });
    for (std::size_t i = (left.size() + 1) / 2; i < left.size(); ++i) left[i]->active = false;
  }
}

std::vector<std::size_t> cover(const std::vector<std::vector<Seconds>>& times, std::size_t most) {
  std::vector<std::size_t> chosen;
  if (times.empty()) return chosen;
  std::vector<bool> open(times.front().size());
  for (std::size_t probe = 0; probe < open.size(); ++probe) open[probe] = std::isfinite(fastest(times, probe));
  while (chosen.size() < most) {
    std::size_t best = 0, most_served = 0;
    for (std::size_t i = 0; i < times.size(); ++i) {
      std::size_t served = 0;
      for (std::size_t probe = 0; probe < open.size(); ++probe)
        served += open[probe] && times[i][probe] <= close_enough * fastest(times, probe);
      if (served > most_served) best = i, most_served = served;
    }
    if (most_served == 0) break;
    chosen.push_back(best);
    for (std::size_t probe = 0; probe < open.size(); ++probe)
      if (times[best][probe] <= close_enough * fastest(times, probe)) open[probe] = false;
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace waywiser
