#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/collective/call.hpp"

namespace waywiser {

// The ranks of each machine in ascending order; machines in the order of their first rank.
struct RanksByMachine {
  std::vector<std::vector<int>> ranks;
  int mine = 0;   // the machine of the call's rank
  int local = 0;  // and its index in it

  explicit RanksByMachine(const CollectiveCall& call);
  int count() const { return static_cast<int>(ranks.size()); }
  int smallest() const;
  int largest() const;
  const std::vector<int>& neighbors() const { return ranks[static_cast<std::size_t>(mine)]; }
};

// Why no algorithm that distinguishes machines can serve the call.
std::optional<std::string> why_one_machine(const CollectiveCall& call);

}  // namespace waywiser
