#include "waywiser/comm/message/held_memory.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "waywiser/device/descriptor.hpp"

namespace waywiser {

bool process_has_ended(std::uint64_t process) noexcept {
  const auto id = static_cast<pid_t>(process);
  const Descriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, id, 0)));
  if (handle.open()) {
    pollfd entry{handle.number(), POLLIN, 0};
    return ::poll(&entry, 1, 0) == 1;
  }
  if (errno == ESRCH) return true;
  // Old systems and some sandboxes lack such handles.
  char one = 0;
  const iovec here{&one, sizeof one}, there{nullptr, sizeof one};
  return ::syscall(SYS_process_vm_readv, id, &here, 1L, &there, 1L, 0L) < 0 && errno == ESRCH;
}

}  // namespace waywiser
