#pragma once

#include <string>

#include "waywiser/policy/candidates.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

// A question about one transfer.
struct Question {
  Place source, destination;
  int processes = 1;
  Operation operation = Operation::latency;
  Bytes bytes = 0;
  std::string rail = {};  // for a rank bound to that network device; empty: any
};

// The candidates with measured and predicted time, rate, percent of the limit, and why each is chosen or not; also the
// paths that are unavailable, were rejected or lost the search. Throws invalid_input if the profile does not have the
// pair.
// {question, chosen, candidates: [{label, path, measured: {seconds, low, high}|null, predicted, rate,
// percent_of_limit, ratio, why}], unavailable: [{label, reason}], searched: [{label, bytes, seconds}]}
Json explain(const Profile& profile, const Plan& plan, const Question& question, const MechanismOrder& order);

}  // namespace waywiser
