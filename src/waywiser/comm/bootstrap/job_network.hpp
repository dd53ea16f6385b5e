#pragma once

#include <string>

#include "waywiser/comm/bootstrap/launch.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/transport/ucx/ucx_context.hpp"

namespace waywiser {

// According to the launch, all ranks are on one machine: no network is needed.
bool is_within_a_machine(const Launch& launch);

// Which means within this machine work for all of its ranks; by trial, and as all of them found.
struct LocalWays {
  std::string why_split = {};        // why some ranks must reach others as those of another machine; empty: none
  bool copies = true;                // between any two processes, by system calls
  std::string why_no_shm = {};       // why UCX cannot share memory in /dev/shm; empty: it can
  unsigned sharing_shm = 1;          // ranks that use the same
  std::string why_no_loopback = {};  // why TCP within the machine does not reach all; empty: it does
  bool speaks = true;                // this rank tells people
};

// The networks on which UCX listens in a job: none within a machine; between machines the root's network or the plan's
// (nullptr: no plan); none if the job encrypts. UCX settings of the user take precedence.
struct JobNetwork {
  bool within_a_machine = true;
  UcxContext::Settings settings = {};
  std::string note = {};   // printed once; empty: nothing to print
  bool open = false;       // UCX carries the traffic between machines
  bool encrypted = false;  // traffic between machines is
  bool loopback = false;   // UCX also carries traffic within the machine by TCP
  bool shm = true;         // it uses /dev/shm
};
// Throws unavailable or io if the root cannot be reached, unavailable if no means is left between ranks of the machine.
JobNetwork job_network(const Launch& launch, const Plan* plan, bool encrypted = false, const LocalWays& ways = {});

// The transports of UCX within a machine, without those that `excluded` ("^cma,posix", or empty) names. System V memory
// is left out: other users of the user's primary group may open it.
std::string local_transports(std::string_view excluded);

}  // namespace waywiser
