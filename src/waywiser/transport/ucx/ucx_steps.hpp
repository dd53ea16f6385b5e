#pragma once

#include "waywiser/transport/step.hpp"

namespace waywiser {

// What happens to a message of mechanism `ucx`. Simulated paths have names of networks, such as ib, as transports.
PathSteps ucx_steps(const Path& path, Bytes bytes);

// The part of such a path between the two machines, from one memory that the network can read to another.
void add_network(PathSteps& steps, const Path& path, const StepEnd& from, const StepEnd& to, Bytes piece);

}  // namespace waywiser
