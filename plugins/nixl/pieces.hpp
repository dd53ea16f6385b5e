#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

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

// A list of ranges, from which as many bytes as wanted are taken in turn.
class NextRanges {
 public:
  explicit NextRanges(std::span<const iovec> all) : all_(all) {}
  std::vector<iovec> take(std::size_t bytes) {
    std::vector<iovec> taken;
    while (bytes > 0 && !all_.empty()) {
      const std::size_t length = std::min(bytes, all_.front().iov_len - done_);
      taken.push_back({static_cast<char*>(all_.front().iov_base) + done_, length});
      bytes -= length;
      done_ += length;
      if (done_ == all_.front().iov_len) all_ = all_.subspan(1), done_ = 0;
    }
    return taken;
  }

 private:
  std::span<const iovec> all_;
  std::size_t done_ = 0;  // of the first one
};

}  // namespace waywiser_nixl
