#include "waywiser/collective/nccl/nccl_network.hpp"

#include "waywiser/base/environment.hpp"
#include "waywiser/base/set_environment.hpp"

namespace waywiser {

std::string why_no_network_for_nccl(bool within_a_machine, bool encrypts) {
  if (encrypts && !within_a_machine) return "NCCL does not encrypt messages to other machines, and this job encrypts";
  if (within_a_machine || environment("WAYWISER_TRUST_NETWORK") == "1") return {};
  return "NCCL accepts connections from anybody: it is used between machines only if `waywiser run --trust-network` or "
         "WAYWISER_TRUST_NETWORK=1 says that the network is private";
}

std::string open_network_for_nccl(bool within_a_machine, bool encrypts) {
  if (within_a_machine && !environment("NCCL_SOCKET_IFNAME")) set_environment("NCCL_SOCKET_IFNAME", "lo");
  return why_no_network_for_nccl(within_a_machine, encrypts);
}

}  // namespace waywiser
