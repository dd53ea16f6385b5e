#pragma once

#include <string>
#include <vector>

#include "waywiser/measure/profile.hpp"
#include "waywiser/policy/cost.hpp"

namespace waywiser {

// The names of mechanisms(), in its order: on equal cost the earlier one wins.
using MechanismOrder = std::vector<std::string>;
MechanismOrder mechanism_order();

// The measured ways of one class of pairs for one operation, earlier rows first.
struct Candidates {
  std::vector<const Series*> series;
  std::vector<Cost> costs;
  std::vector<const Series*> encrypted;        // taken only where a job asks for it, whatever the others take
  Operation measured_as = Operation::latency;  // `loaded` where it was not measured: `streaming`
};
// `rail`: only those over this network device; empty: all.
Candidates candidates(const Profile& profile, const PairClass& pair_class, Operation operation,
                      const MechanismOrder& order, std::string_view rail = {});
// The network devices that ways of a class to another machine take one at a time; none within a machine.
std::vector<std::string> single_rails(const Profile& profile, const PairClass& pair_class);

}  // namespace waywiser
