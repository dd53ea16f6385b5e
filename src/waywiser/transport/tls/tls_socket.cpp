#include "waywiser/transport/tls/tls_socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cmath>

#include "waywiser/base/crypto.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/path/network_families.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/tls/kernel_tls.hpp"

namespace waywiser {
namespace {

constexpr unsigned turns_between_looks = 64;
constexpr std::string_view offer_name = "message from the peer process";

sockaddr_in address_of(const std::string& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    throw Error(ErrorKind::invalid_input, std::string(offer_name) + ": " + quoted(host, 40) + " is no address");
  return address;
}

Descriptor tcp_socket() {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) throw Error(ErrorKind::io, "no socket: " + last_system_error());
  return socket;
}

bool is_ready(const Descriptor& socket, short events, Deadline deadline) {
  pollfd entry{socket.number(), events, 0};
  return ::poll(&entry, 1, static_cast<int>(std::ceil(deadline.left() * 1e3))) > 0;
}

std::uint16_t own_port(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw Error(ErrorKind::io, "no port: " + last_system_error());
  return ntohs(address.sin_port);
}

// Equal at both ends.
TlsKey key_of(const std::string& one, const std::string& other) {
  const auto& [first, second] = std::minmax(one, other);
  return hmac_sha256(std::as_bytes(std::span(first)), std::as_bytes(std::span(second)));
}

}  // namespace

bool is_by_kernel(const Path& path) {
  const std::string_view by = path.parameter("by");
  if (by != "openssl" && by != "kernel")
    throw Error(ErrorKind::invalid_input, label(path) + ": parameter 'by' must be openssl or kernel");
  return by == "kernel";
}

std::string address_of_device(const std::string& device) {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> list(raw, ::freeifaddrs);
  for (const ifaddrs* entry = raw; entry != nullptr; entry = entry->ifa_next) {
    if (device != entry->ifa_name || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    std::array<char, INET_ADDRSTRLEN> text{};
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, text.data(), text.size());
    return text.data();
  }
  return {};
}

TlsSocket::TlsSocket(const Path& path, PeerChannel& peer, std::string name)
    : name_(std::move(name)),
      here_(address_of_device(devices_here(path.parameter("device")).front())),
      by_kernel_(is_by_kernel(path)),
      peer_(peer) {}

// Both ends announce their address and a random word; the end with the smaller word connects.
void TlsSocket::connect(Deadline deadline) {
  const Descriptor listener = tcp_socket();
  const sockaddr_in address = address_of(here_, 0);
  if (::bind(listener.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.number(), 16) != 0)
    throw Error(ErrorKind::io, name_ + ": cannot listen on " + here_ + ": " + last_system_error());
  Digest word{};
  fill_with_random(word);
  const std::string mine = hexadecimal(word);
  const Json theirs =
      peer_.exchange({{"tls_host", here_}, {"tls_port", own_port(listener)}, {"tls_word", mine}}, deadline);
  const std::string other = require_string(theirs, "tls_word", offer_name);
  context_ = std::make_unique<TlsContext>(key_of(mine, other), by_kernel_);
  is_server_ = mine > other;
  Descriptor socket = connect_or_accept(
      listener, require_string(theirs, "tls_host", offer_name),
      static_cast<std::uint16_t>(require_integer(theirs, "tls_port", offer_name, 1, 65535)), deadline);
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  line_ = std::make_unique<TlsConnection>(*context_, std::move(socket), is_server_ ? TlsSide::server : TlsSide::client);
  shake_hands(deadline);
}

Descriptor TlsSocket::connect_or_accept(const Descriptor& listener, const std::string& host, std::uint16_t port,
                                        Deadline deadline) const {
  const std::string late = name_ + ": the two ends do not reach each other";
  if (is_server_) {
    if (!is_ready(listener, POLLIN, deadline)) throw Error(ErrorKind::timeout, late);
    Descriptor socket(::accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) throw Error(ErrorKind::io, late + ": " + last_system_error());
    return socket;
  }
  Descriptor socket = tcp_socket();
  const sockaddr_in address = address_of(host, port);
  if (::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS)
    throw Error(ErrorKind::io, late + ": " + last_system_error());
  if (!is_ready(socket, POLLOUT, deadline)) throw Error(ErrorKind::timeout, late);
  return socket;
}

void TlsSocket::shake_hands(Deadline deadline) {
  while (!line_->handshake()) look(deadline);
  if (by_kernel_ && !line_->encrypted_by_kernel())
    throw Error(ErrorKind::unavailable, name_ + ": " + ssl_library().path() + " does not let the kernel encrypt");
}

void TlsSocket::send(ConstRegion source) {
  sends_.push_back(source);
  advance();
}

void TlsSocket::receive(Region destination) {
  receives_.push_back(destination);
  advance();
}

void TlsSocket::advance() {
  while (!sends_.empty() && write_first()) sends_.pop_front();
  while (!receives_.empty() && read_first()) receives_.pop_front();
}

// True: all of it has gone.
bool TlsSocket::write_first() {
  const ConstRegion source = sends_.front();
  const std::uint64_t length = source.bytes;
  return writer_.write(*line_, std::as_bytes(std::span(&length, 1)), std::span(source.data, source.bytes));
}

// True: all of it has come.
bool TlsSocket::read_first() {
  const Region destination = receives_.front();
  const auto head = std::as_writable_bytes(std::span(&length_, 1));
  while (!reader_.has_head(head)) {
    if (reader_.read(*line_, head) == 0) return false;
    if (!reader_.has_head(head)) continue;
    if (length_ != destination.bytes)
      throw Error(ErrorKind::corrupt, name_ + ": accepted " + std::to_string(destination.bytes) + " bytes, but " +
                                          std::to_string(length_) + " were put");
    reader_.expect(destination.bytes, destination.data);
  }
  while (reader_.body_left() != 0)
    if (reader_.read(*line_, head) == 0) return false;
  reader_.begin_message();
  return true;
}

void TlsSocket::finish(Deadline deadline) {
  for (unsigned turn = 1; !sends_.empty() || !receives_.empty(); ++turn) {
    advance();
    if (turn % turns_between_looks == 0) look(deadline);
  }
}

void TlsSocket::finish_sends(Deadline deadline) {
  for (unsigned turn = 1; !sends_.empty(); ++turn) {
    advance();
    if (turn % turns_between_looks == 0) look(deadline);
  }
}

void TlsSocket::look(Deadline deadline) const { peer_.look(name_, deadline); }

}  // namespace waywiser
