#include "waywiser/comm/shared_memory/shm_space.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>

namespace waywiser {
namespace {

constexpr Bytes of_event = 8448;  // the most that one keeps
constexpr std::uint64_t least_events = 16, most_events = 4096;

}  // namespace

ShmSpace shm_space() noexcept {
  constexpr const char* folder = "/dev/shm";
  struct stat facts{};
  struct statvfs space{};
  if (::stat(folder, &facts) != 0 || ::statvfs(folder, &space) != 0) return {};
  const bool may_write = (space.f_flag & ST_RDONLY) == 0 && ::access(folder, W_OK | X_OK) == 0;
  const bool has_nodes = space.f_files == 0 || space.f_favail != 0;
  return {facts.st_dev, may_write && has_nodes ? Bytes{space.f_bavail} * space.f_frsize : 0};
}

std::string ShmGuard::look() noexcept {
  const Bytes free = shm_space().free, needed = ranks_ * shm_step;
  if (free < needed) {
    look_at_ = std::numeric_limits<std::uint64_t>::max();
    return "/dev/shm has " + std::to_string(free) + " bytes free, and UCX may need " + std::to_string(needed) +
           " for messages that " + std::to_string(ranks_) +
           " ranks have not received yet: make room (docker run --shm-size=1g), or set WAYWISER_UCX_TLS=^posix";
  }
  look_at_ = handled_ + std::clamp((free - needed) / (2 * of_event * ranks_), least_events, most_events);
  return {};
}

}  // namespace waywiser
