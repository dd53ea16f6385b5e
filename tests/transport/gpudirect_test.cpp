#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "waywiser/transport/ucx/gpudirect_rdma.hpp"
#include "waywiser/transport/ucx/ucx_availability.hpp"
#include "waywiser/transport/ucx/ucx_library.hpp"

namespace waywiser {
namespace {

using Files = std::vector<std::pair<std::string, std::string>>;

// The missing part of a machine with these files; empty: none.
std::string missing(const Files& files) {
  const std::filesystem::path root = testing::TempDir() + "gpudirect." + std::to_string(::getpid());
  std::filesystem::create_directories(root);
  for (const auto& [name, text] : files) {
    std::filesystem::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text << '\n';
  }
  const auto why = why_no_gpudirect_rdma(SystemFiles(root));
  std::filesystem::remove_all(root);
  return why.value_or("");
}

const std::pair<std::string, std::string> new_kernel{"proc/sys/kernel/osrelease", "6.1.0-18-amd64"},
    old_kernel{"proc/sys/kernel/osrelease", "5.4.0"},
    open_driver{"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1"},
    closed_driver{"proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.1"};

TEST(GpuDirectRdma, NeedsAPeerMemoryClientOrADmaBuf) {
  EXPECT_EQ(missing({{"sys/module/nvidia_peermem/version", "580.1"}, old_kernel}), "");
  EXPECT_EQ(missing({new_kernel, open_driver}), "");
  EXPECT_NE(missing({old_kernel, open_driver}).find("kernel 5.4.0 is too old for dma-buf (5.12)"), std::string::npos);
  EXPECT_NE(missing({new_kernel, closed_driver}).find("not the open one"), std::string::npos);
  EXPECT_NE(missing({new_kernel}).find("there is no NVIDIA driver"), std::string::npos);
  EXPECT_NE(missing({}).find("nvidia_peermem"), std::string::npos);
}

// UCX itself passes over what it does not know, and would move the bytes by something else.
TEST(UcxAvailability, ATransportForGpuMemoryThatUcxLacksIsNamed) {
  if (!ucx_library().usable()) GTEST_SKIP() << ucx_library().why_not();
  const auto platform = open_host_platform();
  const Path path{
      "ucx", gpu(0), seen_from_other(gpu(0)), 2, {{"transports", "network-tcp"}, {"device", "lo"}, {"gdrcopy", "on"}}};
  const auto why = why_no_ucx(path, {*platform});
  if (!why) GTEST_SKIP() << "this UCX has GDRCopy";
  EXPECT_TRUE(why->find("has no transport 'cuda_copy' on lo (built without CUDA") != std::string::npos ||
              why->find("has no transport 'gdr_copy' on lo (GDRCopy: ") != std::string::npos)
      << *why;
}

}  // namespace
}  // namespace waywiser
