#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace waywiser_nccl {

// What NCCL shall do for a range of sizes; -1 and 0: NCCL decides.
struct Way {
  int algorithm = -1, protocol = -1;
  int channels = 0;
  std::size_t chunk = 0;

  bool operator==(const Way&) const = default;
};

// "Ring(channels=8,chunk=524288,protocol=LL128)", by NCCL's names; "default". Nothing: it is not understood.
std::optional<Way> read_way(std::string_view text);

}  // namespace waywiser_nccl
