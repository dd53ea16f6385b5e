#pragma once

#include <string>
#include <vector>

#include "waywiser/measure/profile.hpp"
#include "waywiser/policy/cost.hpp"

namespace waywiser {

// The names of mechanisms(), in order: on equal cost the earlier one wins.
using MechanismOrder = std::vector<std::string>;
MechanismOrder mechanism_order();

// The measured paths of one class of pairs for one operation, earlier rows first.
struct Candidates {
  std::vector<const Series*> series;
  std::vector<Cost> costs;
  Operation measured_as = Operation::latency;  // `streaming` if `loaded` was not measured
};
// `rail`: only paths over this network device; empty: all. `encrypted`: those that encrypt, else those that do not.
Candidates candidates(const Profile& profile, const PairClass& pair_class, Operation operation,
                      const MechanismOrder& order, std::string_view rail = {}, bool encrypted = false);
// The network devices that paths of a class to another machine use singly; none within a machine.
std::vector<std::string> single_rails(const Profile& profile, const PairClass& pair_class);

}  // namespace waywiser
