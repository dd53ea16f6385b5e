#include "waywiser/transport/ucx/ucx_roads.hpp"

#include <algorithm>

namespace waywiser {

std::span<const UcxRoad> ucx_roads() {
  using enum UcxRoad::Memory;
  // cma and cuda_* cannot carry UCX's own messages, so posix does.
  static constexpr UcxRoad rows[] = {
      {"posix", "posix", "", host},
      {"sysv", "sysv", "", host},
      {"cma", "posix,cma", "", host},
      {"tcp", "tcp", "lo", host},  // without a device UCX spreads large messages over all network cards
      {"cuda_ipc", "posix,cuda_copy,cuda_ipc", "", gpu_pair},
      {"cuda_copy", "posix,cuda_copy", "", any_gpu},
  };
  return rows;
}

const UcxRoad* find_ucx_road(std::string_view name) {
  const auto rows = ucx_roads();
  const auto found = std::ranges::find(rows, name, &UcxRoad::name);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace waywiser
