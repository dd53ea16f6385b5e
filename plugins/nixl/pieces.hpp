#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace waywiser_nixl {

// Calls with each piece that lies in one range on both sides, in order.
template <typename Call>
void for_pieces(std::span<const iovec> local, std::span<const iovec> remote, const Call& call) {
  const auto at = [](const iovec& memory, std::size_t done) { return static_cast<char*>(memory.iov_base) + done; };
  for (std::size_t i = 0, j = 0, local_done = 0, remote_done = 0; i < local.size() && j < remote.size();) {
    const std::size_t bytes = std::min(local[i].iov_len - local_done, remote[j].iov_len - remote_done);
    call(at(local[i], local_done), at(remote[j], remote_done), bytes);
    local_done += bytes;
    remote_done += bytes;
    if (local_done == local[i].iov_len) ++i, local_done = 0;
    if (remote_done == remote[j].iov_len) ++j, remote_done = 0;
  }
}

inline std::size_t bytes_of(std::span<const iovec> memories) {
  std::size_t bytes = 0;
  for (const iovec& memory : memories) bytes += memory.iov_len;
  return bytes;
}

}  // namespace waywiser_nixl
