#include "waywiser/device/peer_switch.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/base/error_of.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

class PeerSwitch : public testing::Test {
 protected:
  ~PeerSwitch() override { ::unsetenv("WAYWISER_PEER_ACCESS"); }
  static void set(const char* value) { ::setenv("WAYWISER_PEER_ACCESS", value, 1); }
  static std::unique_ptr<Platform> two_gpus() {
    VirtualMachine machine;
    machine.gpus = 2;
    return open_virtual_platform(machine);
  }
};

TEST_F(PeerSwitch, OffNoGpuMapsAnotherOne) {
  set("off");
  const auto platform = two_gpus();
  const std::string why = "GPU 0 cannot map GPU 1 (WAYWISER_PEER_ACCESS=off)";
  EXPECT_EQ(platform->why_no_peer_access(0, 1), why);
  EXPECT_EQ(platform->why_no_peer_access(1, 1), std::nullopt);
  EXPECT_EQ(error_of([&] { platform->set_peer_access(0, 1, true); }), why);
  const Memory there = platform->allocate(gpu(1), 64, Allocation::gpu);
  EXPECT_EQ(error_of([&] { platform->open_shared(platform->share(there.region()), gpu(0)); }), why);
}

TEST_F(PeerSwitch, OnOrNotSetTheyDo) {
  EXPECT_EQ(two_gpus()->why_no_peer_access(0, 1), std::nullopt);
  set("on");
  EXPECT_EQ(two_gpus()->why_no_peer_access(0, 1), std::nullopt);
}

TEST_F(PeerSwitch, AnotherWordIsRefused) {
  set("none");
  EXPECT_EQ(error_of([] { two_gpus(); }), "WAYWISER_PEER_ACCESS='none' must be on or off");
}

}  // namespace
}  // namespace waywiser
