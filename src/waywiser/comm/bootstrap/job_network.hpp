#pragma once

#include <string>

#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/transport/ucx/ucx_context.hpp"

namespace waywiser {

// According to the launch, all ranks are on one machine: no network is needed.
bool is_within_a_machine(const Launch& launch);

// The networks on which UCX listens in a job: none within a machine; between machines the root's network or the plan's
// (nullptr: no plan); none if the job encrypts. UCX settings of the user take precedence.
struct JobNetwork {
  bool within_a_machine = true;
  UcxContext::Settings settings = {};
  std::string note = {};   // printed once; empty: nothing to print
  bool open = false;       // UCX carries the traffic between machines
  bool encrypted = false;  // traffic between machines is
};
// Throws unavailable or io if the root cannot be reached.
JobNetwork job_network(const Launch& launch, const Plan* plan, bool encrypted = false);

// The transports of UCX within a machine, without those that `excluded` ("^cma,posix", or empty) names. System V memory
// is left out: other users of the user's primary group may open it.
std::string local_transports(std::string_view excluded);

}  // namespace waywiser
