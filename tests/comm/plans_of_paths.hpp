#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/policy/made_up_rows.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

// Between two processes, in both directions.
inline std::shared_ptr<const Chooser> plan_of_paths(const std::vector<Path>& paths) {
  Plan plan;
  plan.rows = {made_up::message_row(paths, 0, 1 << 30, Operation::latency, {{gpu(1), gpu(0)}})};
  return std::make_shared<const Chooser>(std::move(plan));
}

inline std::shared_ptr<const Chooser> plan_that_stages(const std::string& variant) {
  return plan_of_paths({{"host_staged", gpu(0), gpu(1), 2, {{"variant", variant}, {"handle", "cuda_ipc"}}}});
}

}  // namespace waywiser
