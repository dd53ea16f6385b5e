#include "waywiser/comm/bootstrap/unix_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "waywiser/base/error.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"

namespace waywiser {
namespace {

constexpr int waiting_visitors = 4096;
constexpr Seconds lock_patience = 1;

// A path over the length limit is addressed through its folder, which stays open meanwhile.
struct Address {
  explicit Address(const std::filesystem::path& path) {
    std::string text = path.string();
    if (text.size() >= sizeof name.sun_path) {
      folder = Descriptor(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      text = "/proc/self/fd/" + std::to_string(folder.number()) + "/" + path.filename().string();
    }
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, text.data(), std::min(text.size(), sizeof name.sun_path - 1));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }

  sockaddr_un name{};
  Descriptor folder;
};

Descriptor new_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) throw Error(ErrorKind::io, "no socket: " + last_system_error());
  return socket;
}

std::filesystem::path new_name(const std::filesystem::path& folder) {
  static std::atomic<unsigned> count{0};
  return folder / ("new-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + ".sock");
}

bool nobody_listens_at(const std::filesystem::path& path) { return !connect_at(path).open() && errno == ECONNREFUSED; }

// "rank-PID-...", "new-PID-...", of an earlier version "handle-PID-...": whether the process exists here. If it belongs
// to another PID namespace, the socket is tried.
bool owner_is_here(const std::string& name) {
  if (name.starts_with("job-")) return false;
  const std::size_t begin = name.find('-') + 1;
  return ::access(("/proc/" + name.substr(begin, name.find('-', begin) - begin)).c_str(), F_OK) == 0;
}

bool is_ours(const std::string& name) {
  constexpr std::string_view kinds[] = {"rank-", "handle-", "new-", "job-"};
  return std::ranges::any_of(kinds, [&](std::string_view kind) { return name.starts_with(kind); });
}

void sweep(const std::filesystem::path& folder) {
  const FolderLock lock(folder);
  if (!lock.held()) return;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!is_ours(name) || owner_is_here(name)) continue;
    // An earlier version left files instead of sockets.
    if (entry.symlink_status().type() != std::filesystem::file_type::socket || nobody_listens_at(entry.path()))
      ::unlink(entry.path().c_str());
  }
}

}  // namespace

Descriptor listen_at(const std::filesystem::path& path, struct stat* facts) {
  const std::filesystem::path made = new_name(path.parent_path());
  const Address address(made);
  Descriptor listener = new_socket();
  if (::bind(listener.number(), address.get(), sizeof address.name) != 0 || ::chmod(made.c_str(), 0600) != 0 ||
      ::listen(listener.number(), waiting_visitors) != 0 || (facts != nullptr && ::lstat(made.c_str(), facts) != 0) ||
      ::rename(made.c_str(), path.c_str()) != 0) {
    const std::string why = last_system_error();
    ::unlink(made.c_str());
    throw Error(ErrorKind::io, "cannot listen at " + path.string() + ": " + why);
  }
  return listener;
}

Descriptor connect_at(const std::filesystem::path& path) {
  const Address address(path);
  Descriptor socket = new_socket();
  if (::connect(socket.number(), address.get(), sizeof address.name) == 0) return socket;
  const int problem = errno;
  socket = Descriptor();
  errno = problem;
  return {};
}

bool is_of_this_user(const Descriptor& socket) {
  ucred other{};
  socklen_t length = sizeof other;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &other, &length) == 0 && other.uid == ::geteuid();
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  for (const Deadline deadline = Deadline::in(lock_patience); folder_.open() && !held_ && !deadline.passed();) {
    held_ = ::flock(folder_.number(), LOCK_EX | LOCK_NB) == 0;
    if (!held_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void sweep_runtime_folder() noexcept {
  try {
    sweep(runtime_folder());
  } catch (const std::exception&) {  // a caller that needs the folder reports it
  }
}

}  // namespace waywiser
