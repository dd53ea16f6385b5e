#include "waywiser/policy/planned_ways.hpp"

#include <algorithm>
#include <cstdio>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

bool is_of(const PlanKey& key, const WaysOf& wanted) noexcept {
  return !key.is_message() && key.partner.empty() && key.operation == wanted.operation && key.memory == wanted.memory &&
         (wanted.ranks == 0 || key.ranks == wanted.ranks);
}

std::vector<PlannedWay> planned_ways(const Chooser* chooser, const WaysOf& wanted) {
  std::vector<PlannedWay> found;
  if (chooser == nullptr) return found;
  for (const PlanRow& row : chooser->plan().rows)
    if (is_of(row.key, wanted)) {
      found.push_back({row.from_bytes, row.to_bytes, row.way()});
      for (std::size_t i = 1; i < row.ways.size(); ++i) found.back().others.push_back(row.ways[i].way);
    }
  std::ranges::sort(found, {}, &PlannedWay::from);
  return found;
}

void refuse_planned_way(const WaysOf& wanted, const Way& way) {
  throw Error(ErrorKind::invalid_input, "plan: " + std::string(wanted.operation) + " of " + std::string(wanted.memory) +
                                            " arrays has no way " + quoted(text(way), 80));
}

void tell_passed_over(const PlannedWay& planned, const WaysOf& wanted, const std::string& why) {
  std::fprintf(stderr, "waywiser: %.*s of %.*s arrays: %s, which the plan has from %s on, does not run: %s\n",
               static_cast<int>(wanted.operation.size()), wanted.operation.data(),
               static_cast<int>(wanted.memory.size()), wanted.memory.data(), text(planned.way).c_str(),
               format_bytes(planned.from).c_str(), why.c_str());
}

}  // namespace waywiser
