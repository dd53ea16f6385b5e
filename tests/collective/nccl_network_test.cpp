#include "waywiser/collective/nccl/nccl_network.hpp"

#include <gtest/gtest.h>

#include "tests/comm/with_variable.hpp"
#include "waywiser/base/environment.hpp"

namespace waywiser {
namespace {

TEST(NcclNetwork, WithinAMachineIsTheLoopbackUnlessTheUserHasSaidOtherwise) {
  {
    const WithVariable restored("NCCL_SOCKET_IFNAME", "");  // empty counts as unset
    EXPECT_EQ(open_network_for_nccl(true, false), "");
    EXPECT_EQ(environment("NCCL_SOCKET_IFNAME"), "lo");
  }
  const WithVariable said("NCCL_SOCKET_IFNAME", "eth3");
  EXPECT_EQ(open_network_for_nccl(true, false), "");
  EXPECT_EQ(environment("NCCL_SOCKET_IFNAME"), "eth3");
}

TEST(NcclNetwork, BetweenMachinesIsOneThatTheUserTrusts) {
  const WithVariable interface("NCCL_SOCKET_IFNAME", "");
  {
    const WithVariable untold("WAYWISER_TRUST_NETWORK", "");
    EXPECT_NE(open_network_for_nccl(false, false).find("--trust-network"), std::string::npos);
  }
  const WithVariable told("WAYWISER_TRUST_NETWORK", "1");
  EXPECT_EQ(open_network_for_nccl(false, false), "");
  EXPECT_EQ(environment("NCCL_SOCKET_IFNAME"), std::nullopt);  // which one is NCCL's affair
  EXPECT_NE(open_network_for_nccl(false, true).find("does not encrypt"), std::string::npos);
}

}  // namespace
}  // namespace waywiser
