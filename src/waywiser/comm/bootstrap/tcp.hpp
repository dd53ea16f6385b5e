#pragma once

#include <netdb.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/endpoint.hpp"
#include "waywiser/comm/bootstrap/frame.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// Of a name, the best first. Throws io when it is unknown.
using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
Addresses resolve(const Endpoint& endpoint);

// Non-blocking. Throws io: the name is unknown, or the port is taken; the message names the endpoint.
Descriptor listen_on(const Endpoint& endpoint);
std::uint16_t port_of(const Descriptor& listener);
// Nothing when nobody is waiting.
Descriptor accept_one(const Descriptor& listener);
// Tries until the deadline while nobody listens there yet. Throws timeout or io.
Descriptor connect_to(const Endpoint& endpoint, Deadline deadline);
// Does not wait: whether somebody listens there, the first use of the socket tells. Throws io.
Descriptor begin_connecting(const Endpoint& endpoint);
// What is written goes at once. Of a silent connection the kernel finds out within 5 s that the other machine is gone.
void keep_alive(const Descriptor& socket);

// One connection, by TCP or a Unix socket, that carries frames. Reads and writes never block beyond their deadline.
class Connection {
 public:
  Connection(Descriptor socket, std::size_t largest_frame);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int number() const noexcept { return socket_.number(); }
  // What follows, both ways, is encrypted, and carries marks.
  void seal(const Seal& seal) {
    seal_ = seal;
    reader_.expect_seal(&seal_);
  }
  // The connection for somebody else, who must not miss a frame that has been read already.
  std::pair<Descriptor, Seal> release() noexcept { return {std::move(socket_), seal_}; }
  void set_limit(std::size_t largest_frame) noexcept { reader_.set_limit(largest_frame); }
  // Throws io when the other side has gone, timeout when it does not read.
  void send(FrameKind kind, std::span<const std::byte> body, Deadline deadline);
  void send(const Frame& frame, Deadline deadline) { send(frame.kind, frame.body, deadline); }
  // What has come, without waiting. Throws io ("it has ended") at its end, invalid_input for what is no frame.
  std::optional<Frame> poll_frame();
  // Throws timeout.
  Frame receive(Deadline deadline);

 private:
  void read_some();

  Descriptor socket_;
  Seal seal_;
  FrameReader reader_;
};

// While it lives, the waits of this thread ask now and then: true ends them with `interrupted`.
class Interruptible {
 public:
  explicit Interruptible(const std::function<bool()>& interrupted);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();
};
// Also in waits for something else.
void throw_if_interrupted();

// Waits until `socket` is ready for `events` of poll(2). False: the deadline passed first.
bool wait_for_socket(int socket, short events, Deadline deadline);

}  // namespace waywiser
