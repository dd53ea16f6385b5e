#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "waywiser/c/waywiser.h"

namespace waywiser_nccl {

struct FreePlan {
  void operator()(ww_plan* plan) const { ww_plan_free(plan); }
};
using Plan = std::unique_ptr<ww_plan, FreePlan>;

// Why the plan says nothing, the same at all ranks: the job is left as it is.
struct NothingToSay : std::runtime_error {
  using runtime_error::runtime_error;
};
// Why this rank may not start: others may follow a plan that it does not have.
struct Refusal : std::runtime_error {
  using runtime_error::runtime_error;
};

// The plan of WAYWISER_NCCL_PLAN, "HASH:FILE", which all ranks of a job have been given: NCCL hangs if ranks choose
// differently. Throws NothingToSay, Refusal.
Plan agreed_plan();

// One line on standard error; each text once in a process.
void say(const std::string& text);

}  // namespace waywiser_nccl
