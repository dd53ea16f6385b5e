#pragma once

#include "waywiser/comm/bootstrap/meeting.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// A connection between the two ranks of a job, each on its own machine, that both have proved to know the secret on.
struct MachineConnection {
  Introduction other;
  bool same_machine = false;
  PeerSocket line;  // sealed, where they met at an address
};

// Both ranks call it, as often as they need a fresh line. Throws invalid_input for a job of more than two ranks, and
// what meet() throws.
MachineConnection meet_other_machine(const Launch& launch, Deadline deadline);

}  // namespace waywiser
