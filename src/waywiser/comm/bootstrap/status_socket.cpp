#include "waywiser/comm/bootstrap/status_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

std::filesystem::path path_for(int rank) {
  try {
    return runtime_folder() / ("rank-" + std::to_string(::getpid()) + "-" + std::to_string(rank) + ".sock");
  } catch (const Error&) {  // the group works without
    return {};
  }
}

Descriptor listener_at(const std::filesystem::path& path) {
  try {
    if (!path.empty()) return listen_at(path);
  } catch (const Error&) {  // likewise
  }
  return {};
}

}  // namespace

StatusSocket::StatusSocket(int rank, std::function<std::string()> describe)
    : path_(path_for(rank)), listener_(listener_at(path_)), describe_(std::move(describe)) {}

void StatusSocket::close() noexcept {
  if (!listener_.open()) return;
  ::unlink(path_.c_str());
  listener_ = {};
}

void StatusSocket::answer() {
  for (;;) {
    const Descriptor asker(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!asker.open()) return;
    const std::string line = describe_() + "\n";
    static_cast<void>(::send(asker.number(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
}

}  // namespace waywiser
