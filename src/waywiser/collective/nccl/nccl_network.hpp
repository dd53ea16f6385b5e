#pragma once

#include <string>

namespace waywiser {

// NCCL's ranks find each other, and move data, over sockets that prove nothing. Within a machine they get the loopback
// (NCCL_SOCKET_IFNAME, unless the user has set it; NCCL reads it once a process). Between machines it is for the user
// to say that the network is trusted: WAYWISER_TRUST_NETWORK=1; a job that encrypts has no use for it there. Returns
// why NCCL is not used; empty: it may be.
std::string open_network_for_nccl(bool within_a_machine, bool encrypts);
std::string why_no_network_for_nccl(bool within_a_machine, bool encrypts);

}  // namespace waywiser
