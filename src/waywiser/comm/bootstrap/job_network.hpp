#pragma once

#include <string>

#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/transport/ucx/ucx_context.hpp"

namespace waywiser {

// All ranks are on one machine, as far as the launch tells: no network is needed.
bool is_within_a_machine(const Launch& launch);

// Which networks UCX listens on in a job: none within a machine; between machines that of the root, or what the plan
// names (nullptr: no plan); none where something else encrypts what goes there. What the user has set for UCX goes
// before.
struct JobNetwork {
  bool within_a_machine = true;
  UcxContext::Settings settings = {};
  std::string note = {};  // to be told once; empty: there is nothing to tell
  bool open = false;      // UCX carries what goes between machines
};
// Throws unavailable or io when there is no way to the root.
JobNetwork job_network(const Launch& launch, const Plan* plan, bool encrypted = false);

// What UCX uses within a machine, without what `excluded` ("^cma,posix", or empty) leaves out. No memory of System V:
// others of the user's primary group may open it.
std::string local_transports(std::string_view excluded);

}  // namespace waywiser
