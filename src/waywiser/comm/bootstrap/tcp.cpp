#include "waywiser/comm/bootstrap/tcp.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <memory>
#include <thread>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr auto between_connects = std::chrono::milliseconds(20);
constexpr double ms_between_questions = 100;
constexpr int waiting_connections = 4096;
constexpr std::size_t read_bytes = 32 << 10;
constexpr int ms_without_acknowledgement = 3500;  // ranks that wait send every 0.5 s: a lost machine is known after 4 s

thread_local const std::function<bool()>* asked_while_waiting = nullptr;

Descriptor open_socket(const addrinfo& address) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) throw Error(ErrorKind::io, "no socket: " + last_system_error());
  return socket;
}

void set(const Descriptor& socket, int level, int option, int value) {
  // Options that a system does not know are not needed.
  static_cast<void>(::setsockopt(socket.number(), level, option, &value, sizeof value));
}

bool is_tcp(const Descriptor& socket) {
  int domain = AF_UNSPEC;
  socklen_t length = sizeof domain;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain != AF_UNIX;
}

// The kernel only reads it.
iovec part_of_message(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // NOLINT(cppcoreguidelines-pro-type-const-cast)
}

// Returns 0, or the errno of the attempt.
int attempt(const Descriptor& socket, const addrinfo& address, Deadline deadline) {
  if (::connect(socket.number(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for_socket(socket.number(), POLLOUT, deadline)) return ETIMEDOUT;
  int problem = 0;
  socklen_t length = sizeof problem;
  ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &problem, &length);
  return problem;
}

}  // namespace

std::string text(const Endpoint& endpoint) {
  const bool ipv6 = endpoint.host.find(':') != std::string::npos;
  return (ipv6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
}

Endpoint parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  Endpoint endpoint;
  if (colon != std::string_view::npos) {
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    endpoint.host = host;
    const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (problem == std::errc() && end == port.data() + port.size() && !host.empty() && host.size() <= 255)
      return endpoint;
  }
  throw Error(ErrorKind::invalid_input, quoted(text, 80) + " is no address: write HOST:PORT");
}

Addresses resolve(const Endpoint& endpoint) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int problem = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (problem != 0)
    throw Error(ErrorKind::io, quoted(endpoint.host, 80) + " is no known host: " + ::gai_strerror(problem));
  return {list, ::freeaddrinfo};
}

Interruptible::Interruptible(const std::function<bool()>& interrupted)
    : before_(std::exchange(asked_while_waiting, &interrupted)) {}

Interruptible::~Interruptible() { asked_while_waiting = before_; }

void throw_if_interrupted() {
  if (asked_while_waiting != nullptr && *asked_while_waiting && (*asked_while_waiting)())
    throw Error(ErrorKind::interrupted, "interrupted");
}

bool wait_for_socket(int socket, short events, Deadline deadline) {
  const bool asks = asked_while_waiting != nullptr && *asked_while_waiting;
  for (;;) {
    pollfd entry{socket, events, 0};
    const double patience = asks ? ms_between_questions : 1e6;
    const int ready = ::poll(&entry, 1, static_cast<int>(std::ceil(std::min(deadline.left() * 1e3, patience))));
    throw_if_interrupted();
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) throw Error(ErrorKind::io, "poll failed: " + last_system_error());
    if (deadline.passed()) return false;
  }
}

Descriptor listen_on(const Endpoint& endpoint) {
  const Addresses addresses = resolve(endpoint);
  Descriptor socket = open_socket(*addresses);
  set(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (::bind(socket.number(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(socket.number(), waiting_connections) != 0)
    throw Error(ErrorKind::io, "cannot listen on " + text(endpoint) + ": " + last_system_error());
  return socket;
}

std::uint16_t port_of(const Descriptor& listener) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (::getsockname(listener.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw Error(ErrorKind::io, "no port: " + last_system_error());
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Descriptor accept_one(const Descriptor& listener) {
  return Descriptor(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

Descriptor connect_to(const Endpoint& endpoint, Deadline deadline) {
  const Addresses addresses = resolve(endpoint);
  for (;;) {
    int problem = 0;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
      Descriptor socket = open_socket(*address);
      problem = attempt(socket, *address, deadline);
      if (problem == 0) return socket;
    }
    if (deadline.passed()) {
      errno = problem;
      throw Error(ErrorKind::timeout, "no rank answers at " + text(endpoint) + ": " + last_system_error());
    }
    throw_if_interrupted();
    std::this_thread::sleep_for(between_connects);
  }
}

Descriptor begin_connecting(const Endpoint& endpoint) {
  const Addresses address = resolve(endpoint);
  Descriptor socket = open_socket(*address);
  keep_alive(socket);
  if (::connect(socket.number(), address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS)
    throw Error(ErrorKind::io, "no connection to " + text(endpoint) + ": " + last_system_error());
  return socket;
}

void keep_alive(const Descriptor& socket) {
  if (!is_tcp(socket)) return;
  set(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Connection::Connection(Descriptor socket, std::size_t largest_frame)
    : socket_(std::move(socket)), reader_(largest_frame) {
  keep_alive(socket_);
  // Frames are read at once. For data this timeout would end a connection whose reader is busy for that long.
  if (is_tcp(socket_)) set(socket_, IPPROTO_TCP, TCP_USER_TIMEOUT, ms_without_acknowledgement);
}

void Connection::send(FrameKind kind, std::span<const std::byte> body, Deadline deadline) {
  std::vector<std::byte> head = seal_ ? frame_bytes(kind, body) : frame_head(kind, body.size());
  if (seal_) seal_frame(head, seal_);
  std::span<const std::byte> first = head, second = seal_ ? std::span<const std::byte>() : body;
  while (!first.empty() || !second.empty()) {
    std::array<iovec, 2> parts{part_of_message(first), part_of_message(second)};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    const auto sent = ::sendmsg(number(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      const std::size_t of_first = std::min(first.size(), static_cast<std::size_t>(sent));
      first = first.subspan(of_first);
      second = second.subspan(static_cast<std::size_t>(sent) - of_first);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for_socket(number(), POLLOUT, deadline)) throw Error(ErrorKind::timeout, "it does not read");
    } else if (errno != EINTR) {
      throw Error(ErrorKind::io, "it has ended (" + last_system_error() + ")");
    }
  }
}

void Connection::ask(FrameKind kind, std::span<const std::byte> body, Deadline deadline) {
  try {
    send(kind, body, deadline);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
  }
}

void Connection::end_sending() noexcept { ::shutdown(number(), SHUT_WR); }

void Connection::await_end(Deadline deadline) noexcept {
  if (!is_tcp(socket_)) return;
  std::array<std::byte, read_bytes> dropped;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  for (;;) {
    const auto got = ::recv(number(), dropped.data(), dropped.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return;
    if (deadline.passed()) return;
    pollfd entry{number(), POLLIN, 0};
    if (got < 0) ::poll(&entry, 1, static_cast<int>(std::ceil(deadline.left() * 1e3)));
  }
}

void Connection::read_some() {
  std::array<std::byte, read_bytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  const auto got = ::recv(socket_.number(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got > 0) return reader_.feed(std::span(buffer).first(static_cast<std::size_t>(got)));
  if (got == 0) throw Error(ErrorKind::io, "it has ended");
  if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    throw Error(ErrorKind::io, "it has ended (" + last_system_error() + ")");
}

std::optional<Frame> Connection::poll_frame() {
  if (auto frame = reader_.next()) return frame;
  read_some();
  return reader_.next();
}

Frame Connection::receive(Deadline deadline) {
  for (;;) {
    if (auto frame = poll_frame()) return std::move(*frame);
    if (!wait_for_socket(number(), POLLIN, deadline)) throw Error(ErrorKind::timeout, "it does not answer");
  }
}

}  // namespace waywiser
