#include "waywiser/collective/ranks_by_machine.hpp"

#include <algorithm>

namespace waywiser {

RanksByMachine::RanksByMachine(const CollectiveCall& call) {
  std::vector<int> names;
  for (int rank = 0; rank < call.ranks; ++rank) {
    const int machine = call.machine_of.empty() ? 0 : call.machine_of.at(static_cast<std::size_t>(rank));
    const auto at = static_cast<std::size_t>(std::ranges::find(names, machine) - names.begin());
    if (at == names.size()) {
      names.push_back(machine);
      ranks.emplace_back();
    }
    if (rank == call.rank) {
      mine = static_cast<int>(at);
      local = static_cast<int>(ranks[at].size());
    }
    ranks[at].push_back(rank);
  }
}

int RanksByMachine::smallest() const {
  return static_cast<int>(std::ranges::min_element(ranks, {}, &std::vector<int>::size)->size());
}

int RanksByMachine::largest() const {
  return static_cast<int>(std::ranges::max_element(ranks, {}, &std::vector<int>::size)->size());
}

std::optional<std::string> why_one_machine(const CollectiveCall& call) {
  if (RanksByMachine(call).count() > 1) return {};
  return "all ranks are in one machine";
}

}  // namespace waywiser
