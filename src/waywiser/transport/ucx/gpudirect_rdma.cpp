#include "waywiser/transport/ucx/gpudirect_rdma.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace waywiser {
namespace {

constexpr std::array<std::string_view, 3> peer_clients{"/sys/module/nvidia_peermem/version",
                                                       "/sys/kernel/mm/memory_peers/nv_mem/version",
                                                       "/sys/module/nv_peer_mem/version"};

// "6.1.0-18-amd64" -> {6, 1}.
std::pair<int, int> kernel_in(const std::string& release) {
  std::pair<int, int> version{0, 0};
  const char* const end = release.data() + release.size();
  const char* const point = std::from_chars(release.data(), end, version.first).ptr;
  if (point != end && *point == '.') std::from_chars(point + 1, end, version.second);
  return version;
}

}  // namespace

std::optional<std::string> why_no_gpudirect_rdma(const SystemFiles& files) {
  if (std::ranges::any_of(peer_clients, [&](std::string_view file) { return files.exists(file); })) return {};
  const std::string nobody = "GPUDirect RDMA: no peer-memory client is loaded (nvidia_peermem), and ";
  const std::string release = files.line("/proc/sys/kernel/osrelease").value_or("unknown");
  if (kernel_in(release) < std::pair{5, 12}) return nobody + "kernel " + release + " is too old for dma-buf (5.12)";
  const auto driver = files.line("/proc/driver/nvidia/version");
  if (!driver) return nobody + "there is no NVIDIA driver";
  if (driver->find("Open Kernel Module") == std::string::npos)
    return nobody + "the driver is not the open one, which dma-buf needs";
  return {};
}

}  // namespace waywiser
