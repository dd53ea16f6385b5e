#include "agent_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::string_view kind = "waywiser-nixl-2";
constexpr std::size_t name_letters = 32;
constexpr std::size_t machine_letters = 36;
constexpr std::string_view hexadecimal = "0123456789abcdef";

struct SocketName {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

// A name without a file, which ends with the socket.
SocketName name_of(const std::string& name) {
  SocketName made;
  made.address.sun_family = AF_UNIX;
  const std::string text = "waywiser-nixl-" + name;
  std::copy(text.begin(), text.end(), made.address.sun_path + 1);
  made.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return made;
}

const sockaddr* plain(const SocketName& name) { return reinterpret_cast<const sockaddr*>(&name.address); }

Socket new_socket() {
  Socket made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made) throw Refusal(Status::backend_error, std::string("no socket: ") + std::strerror(errno));
  return made;
}

bool wait_for(const Socket& socket, short event, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd entry{socket.number(), event, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long>(left, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

bool only(std::string_view text, std::string_view letters) { return text.find_first_not_of(letters) == text.npos; }

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

Socket::~Socket() {
  if (number_ >= 0) ::close(number_);
}

std::string this_machine() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  if (text.size() != machine_letters) throw Refusal(Status::backend_error, "the machine's boot_id cannot be read");
  return text;
}

std::string AgentAddress::text() const { return std::string(kind) + " " + machine + " " + socket; }

AgentAddress new_address() {
  std::array<unsigned char, name_letters / 2> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    throw Refusal(Status::backend_error, "no random numbers");
  AgentAddress made{this_machine(), {}};
  for (const unsigned char byte : random) {
    made.socket += hexadecimal[byte >> 4];
    made.socket += hexadecimal[byte & 15];
  }
  return made;
}

AgentAddress address_from(const std::string& text) {
  const std::size_t machine_at = kind.size() + 1, socket_at = machine_at + machine_letters + 1;
  if (text.size() == socket_at + name_letters && text.compare(0, machine_at, std::string(kind) + " ") == 0) {
    AgentAddress found{text.substr(machine_at, machine_letters), text.substr(socket_at)};
    if (only(found.machine, "0123456789abcdef-") && text[socket_at - 1] == ' ' && only(found.socket, hexadecimal))
      return found;
  }
  throw Refusal(Status::mismatch, "what is said of another agent is not of this version of the plug-in");
}

Socket listen_at(const std::string& name) {
  Socket made = new_socket();
  const SocketName at = name_of(name);
  if (::bind(made.number(), plain(at), at.bytes) != 0 || ::listen(made.number(), SOMAXCONN) != 0)
    throw Refusal(Status::backend_error, std::string("no socket for other agents: ") + std::strerror(errno));
  return made;
}

// A connection of this kind is there at once, or is refused.
Socket connect_to(const std::string& name) {
  Socket made = new_socket();
  const SocketName at = name_of(name);
  if (::connect(made.number(), plain(at), at.bytes) == 0) return made;
  if (errno == ECONNREFUSED) throw Refusal(Status::not_supported, "it has ended, or has another network namespace");
  throw Refusal(Status::not_supported, std::strerror(errno));
}

OtherEnd other_end(const Socket& socket) {
  ucred found{};
  socklen_t bytes = sizeof found;
  if (::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &found, &bytes) != 0) return {0, static_cast<uid_t>(-1)};
  return {found.pid, found.uid};
}

bool send_all(const Socket& socket, std::string_view bytes, Clock::time_point deadline) noexcept {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR && (errno != EAGAIN || !wait_for(socket, POLLOUT, deadline))) {
      return false;
    }
  }
  return true;
}

// It is short: it comes in one piece.
bool receive_reply(const Socket& socket, Reply& reply, int& descriptor, Clock::time_point deadline) noexcept {
  if (!wait_for(socket, POLLIN, deadline)) return false;
  iovec part{&reply, sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const ssize_t got = ::recvmsg(socket.number(), &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* control = got >= 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (control != nullptr && control->cmsg_type == SCM_RIGHTS && control->cmsg_len == CMSG_LEN(sizeof(int)))
    std::memcpy(&descriptor, CMSG_DATA(control), sizeof descriptor);
  return got == static_cast<ssize_t>(sizeof reply) && descriptor >= 0 && reply.magic == magic;
}

bool send_reply(int socket, const Reply& reply, int descriptor) noexcept {
  iovec part{const_cast<Reply*>(&reply), sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  cmsghdr* control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof reply);
}

}  // namespace waywiser_nixl
