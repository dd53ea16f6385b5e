#pragma once

#include <optional>
#include <string>
#include <vector>

namespace waywiser {

// A libucp.so.0 and where it was found: "mapped", "environment", "system", "wheel" or "none".
struct LibucpChoice {
  std::string path, origin;

  bool operator==(const LibucpChoice&) const = default;
};

// Where a libucp may be, and what of this machine decides between them.
struct LibucpPlaces {
  std::string maps;                         // as /proc/self/maps
  std::optional<std::string> named;         // WAYWISER_LIBUCP
  std::vector<std::string> system, wheels;  // folders, in order
  bool has_rdma_device = false, has_nvidia_driver = false;
};
LibucpPlaces libucp_places();

// Two copies of UCX in one process break each other, so a copy that is already mapped (by an MPI, say) wins; then the
// named one. Then, on a machine with an RDMA device, the system's, the only one that knows RDMA, and the wheel libucx;
// elsewhere the wheel first, as it is the newer one. With an NVIDIA driver a copy without the CUDA module comes last.
LibucpChoice choose_libucp(const LibucpPlaces& places);

// The path of the libucp in a text like /proc/self/maps, or empty.
std::string mapped_libucp(const std::string& maps);
std::string maps_of_this_process();

}  // namespace waywiser
