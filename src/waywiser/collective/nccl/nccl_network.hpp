#pragma once

#include <string>

namespace waywiser {

// NCCL's ranks meet and move data over unauthenticated sockets. Within a machine they get the loopback interface
// (NCCL_SOCKET_IFNAME, unless the user has set it; NCCL reads it once per process). Between machines the user must
// declare the network trusted: WAYWISER_TRUST_NETWORK=1; a job that encrypts does not use NCCL there. Returns why NCCL
// is not used; empty: it may be used.
std::string open_network_for_nccl(bool within_a_machine, bool encrypts);
std::string why_no_network_for_nccl(bool within_a_machine, bool encrypts);

}  // namespace waywiser
