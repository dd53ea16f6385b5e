#pragma once

#include "waywiser/comm/bootstrap/meeting.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// A connection between the two ranks of a job, one on each machine; both have proved that they know the secret.
struct MachineConnection {
  Introduction other;
  bool same_machine = false;
  PeerSocket line;  // sealed if they met at an address
};

// Both ranks call it once for each new line. Throws invalid_input for a job of more than two ranks, and the errors of
// meet().
MachineConnection meet_other_machine(const Launch& launch, Deadline deadline);

}  // namespace waywiser
