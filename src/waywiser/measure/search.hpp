#pragma once

#include <functional>
#include <vector>

#include "waywiser/measure/contest.hpp"

namespace waywiser {

// Successive halving: after each stage the slower half leaves and the rounds double, until two are left. Afterwards
// every contender that did not fail has a typical time. `keep_on` is asked before each round.
void halve(Contest& contest, const std::function<bool()>& keep_on);

// times[candidate][probe], infinite where not known. The few candidates with which every probe is served within 3 % of
// its best; the earlier of equals. In ascending order, at most `most`.
std::vector<std::size_t> cover(const std::vector<std::vector<Seconds>>& times, std::size_t most);

}  // namespace waywiser
