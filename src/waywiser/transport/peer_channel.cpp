#include "waywiser/transport/peer_channel.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <span>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::uint32_t magic = 0x43505757;  // "WWPC"

// Both ends are of one kind of machine: native byte order.
struct Header {
  std::uint32_t magic = waywiser::magic;
  std::uint32_t length = 0;
  std::uint32_t descriptors = 0;
};

union ControlBuffer {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int) * PeerChannel::most_descriptors)> bytes;
};

[[noreturn]] void peer_gone() { throw Error(ErrorKind::io, "the peer process ended"); }

[[noreturn]] void bad_message(const std::string& why) {
  throw Error(ErrorKind::invalid_input, "message from the peer process: " + why);
}

// Throws timeout unless the socket becomes ready for `events` (or fails, which the next call reports).
void wait_ready(int socket, short events, Deadline deadline, const char* what) {
  for (;;) {
    pollfd entry{socket, events, 0};
    const double milliseconds = std::ceil(std::min(deadline.left() * 1e3, 1e6));
    const int ready = ::poll(&entry, 1, static_cast<int>(milliseconds));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw Error(ErrorKind::io, "poll failed: " + last_system_error());
    if (deadline.passed()) throw Error(ErrorKind::timeout, std::string("the peer process ") + what);
  }
}

// True when the call must be repeated after waiting; throws for every real failure.
bool must_wait(const char* call) {
  if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
  if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) peer_gone();
  if (errno == EINTR) return false;
  throw Error(ErrorKind::io, std::string(call) + " to the peer process failed: " + last_system_error());
}

void attach(msghdr& message, ControlBuffer& control, std::span<const int> descriptors) {
  if (descriptors.empty()) return;
  message.msg_control = control.bytes.data();
  message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(head), descriptors.data(), descriptors.size_bytes());
}

void take_descriptors(msghdr& message, std::vector<Descriptor>& taken) {
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr; head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
      taken.emplace_back(number);
    }
  }
}

// The descriptors travel with the first byte.
void send_all(int socket, std::span<const char> bytes, std::span<const int> descriptors, Deadline deadline) {
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ControlBuffer control{};
    attach(message, control, descriptors);
    const auto sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (must_wait("sendmsg")) wait_ready(socket, POLLOUT, deadline, "does not read its messages");
      continue;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
    descriptors = {};
  }
}

void receive_all(int socket, std::span<char> bytes, std::vector<Descriptor>& taken, Deadline deadline) {
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    ControlBuffer control{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes.data();
    message.msg_controllen = control.bytes.size();
    const auto got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0) {
      if (must_wait("recvmsg")) wait_ready(socket, POLLIN, deadline, "does not answer");
      continue;
    }
    take_descriptors(message, taken);
    if (got == 0) peer_gone();
    if ((message.msg_flags & MSG_CTRUNC) != 0 || taken.size() > PeerChannel::most_descriptors)
      bad_message("more than 8 file descriptors");
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void check_header(const Header& header) {
  if (header.magic != magic) bad_message("not one of ours (wrong first bytes)");
  if (header.length > PeerChannel::largest_message)
    bad_message("announces " + std::to_string(header.length) + " bytes; the limit is 1 MiB");
  if (header.descriptors > PeerChannel::most_descriptors)
    bad_message("announces " + std::to_string(header.descriptors) + " file descriptors; the limit is 8");
}

}  // namespace

PeerChannel::PeerChannel(PeerSocket line) : socket_(std::move(line.socket)), seal_(line.seal) {
  if (!socket_.open()) throw Error(ErrorKind::invalid_input, "a peer channel needs an open socket");
}

void PeerChannel::send(const Json& message, Deadline deadline, const std::vector<int>& descriptors) {
  const std::string text = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > largest_message || descriptors.size() > most_descriptors)
    throw Error(ErrorKind::invalid_input, "message to the peer process: larger than 1 MiB or 8 file descriptors");
  const Header header{magic, static_cast<std::uint32_t>(text.size()), static_cast<std::uint32_t>(descriptors.size())};
  std::vector<char> bytes(sizeof header + text.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(text.begin(), text.end(), bytes.begin() + sizeof header);
  if (seal_) {
    const std::span all = std::as_writable_bytes(std::span(bytes));
    const Seal::Mark mark = seal_.close(all.first(sizeof header), all.subspan(sizeof header));
    bytes.resize(bytes.size() + mark.size());
    std::memcpy(bytes.data() + bytes.size() - mark.size(), mark.data(), mark.size());
  }
  send_all(socket_.number(), bytes, descriptors, deadline);
}

std::pair<Json, std::vector<Descriptor>> PeerChannel::receive(Deadline deadline) {
  std::vector<Descriptor> taken;
  std::array<char, sizeof(Header)> first{};
  receive_all(socket_.number(), first, taken, deadline);
  Header header;
  std::memcpy(&header, first.data(), sizeof header);
  check_header(header);
  std::vector<char> all(sizeof header + header.length + seal_.bytes());
  std::copy(first.begin(), first.end(), all.begin());
  receive_all(socket_.number(), std::span(all).subspan(sizeof header), taken, deadline);
  const std::span sealed = std::as_writable_bytes(std::span(all));
  if (seal_ && !seal_.open(sealed.first(sizeof header), sealed.subspan(sizeof header, header.length),
                           sealed.last(seal_.bytes())))
    bad_message("not from the expected sender: its authentication tag is wrong");
  const std::string text(all.data() + sizeof header, header.length);
  if (taken.size() != header.descriptors)
    bad_message("announces " + std::to_string(header.descriptors) + " file descriptors but carries " +
                std::to_string(taken.size()));
  return {parse_json(text, "message from the peer process"), std::move(taken)};
}

Json PeerChannel::exchange(const Json& mine, Deadline deadline) {
  send(mine, deadline);
  return receive(deadline).first;
}

bool PeerChannel::readable(Deadline deadline) const noexcept {
  pollfd entry{socket_.number(), POLLIN, 0};
  return ::poll(&entry, 1, static_cast<int>(std::ceil(std::min(deadline.left() * 1e3, 1e6)))) > 0;
}

bool PeerChannel::peer_ended() const noexcept {
  pollfd entry{socket_.number(), POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void PeerChannel::look(const std::string& name, Deadline deadline) const {
  if (peer_ended()) throw Error(ErrorKind::io, name + ": the peer process ended");
  if (deadline.passed()) throw Error(ErrorKind::timeout, name + ": the peer process does not answer");
  ::sched_yield();
}

std::pair<Descriptor, Descriptor> PeerChannel::socket_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(ErrorKind::io, "socketpair failed: " + last_system_error());
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace waywiser
