#include "waywiser/collective/nccl/nccl_network.hpp"

#include "waywiser/base/environment.hpp"
#include "waywiser/base/set_environment.hpp"

namespace waywiser {

std::string why_no_network_for_nccl(bool within_a_machine, bool encrypts) {
  if (encrypts && !within_a_machine) return "NCCL does not encrypt what it sends to other machines, and this job does";
  if (within_a_machine || environment("WAYWISER_TRUST_NETWORK") == "1") return {};
  return "NCCL believes whoever reaches its ports: it is used between machines where `waywiser run --trust-network` or "
         "WAYWISER_TRUST_NETWORK=1 says that nobody else does";
}

std::string open_network_for_nccl(bool within_a_machine, bool encrypts) {
  if (within_a_machine && !environment("NCCL_SOCKET_IFNAME")) set_environment("NCCL_SOCKET_IFNAME", "lo");
  return why_no_network_for_nccl(within_a_machine, encrypts);
}

}  // namespace waywiser
