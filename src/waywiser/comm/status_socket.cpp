#include "waywiser/comm/status_socket.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/runtime_folder.hpp"

namespace waywiser {
namespace {

constexpr int waiting_askers = 8;

std::filesystem::path path_for(int rank) {
  try {
    return runtime_folder() / ("rank-" + std::to_string(::getpid()) + "-" + std::to_string(rank) + ".sock");
  } catch (const Error&) {  // the group works without
    return {};
  }
}

Descriptor listen_at(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.empty() || text.size() >= sizeof address.sun_path) return {};
  std::memcpy(address.sun_path, text.data(), text.size());
  ::unlink(text.c_str());  // of a process that had this number before
  Descriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.open() || ::bind(listener.number(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.number(), waiting_askers) != 0)
    return {};
  return listener;
}

}  // namespace

StatusSocket::StatusSocket(int rank, std::function<std::string()> describe)
    : path_(path_for(rank)), listener_(listen_at(path_)), describe_(std::move(describe)) {}

StatusSocket::~StatusSocket() {
  if (listener_.open()) ::unlink(path_.c_str());
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
