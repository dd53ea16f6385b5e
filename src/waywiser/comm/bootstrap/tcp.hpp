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

// The addresses of a name, the best first. Throws io if the name is unknown.
using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;
Addresses resolve(const Endpoint& endpoint);

// Non-blocking. Throws io if the name is unknown or the port is taken; the message names the endpoint.
Descriptor listen_on(const Endpoint& endpoint);
std::uint16_t port_of(const Descriptor& listener);
// Empty if no connection is waiting.
Descriptor accept_one(const Descriptor& listener);
// Retries until the deadline while nobody listens. Throws timeout or io.
Descriptor connect_to(const Endpoint& endpoint, Deadline deadline);
// Does not wait: the first use of the socket shows whether somebody listens there. Throws io.
Descriptor begin_connecting(const Endpoint& endpoint);
// Sends written bytes at once. On a silent connection the kernel detects within 5 s that the other machine is gone.
void keep_alive(const Descriptor& socket);

// A connection over TCP or a Unix socket that carries frames. Reads and writes never block beyond their deadline.
class Connection {
 public:
  Connection(Descriptor socket, std::size_t largest_frame);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int number() const noexcept { return socket_.number(); }
  // Encrypts and authenticates all later frames, in both directions.
  void seal(const Seal& seal) {
    seal_ = seal;
    reader_.expect_seal(&seal_);
  }
  // Hands the connection over; the new owner must not miss a frame that has already been read.
  std::pair<Descriptor, Seal> release() noexcept { return {std::move(socket_), seal_}; }
  void set_limit(std::size_t largest_frame) noexcept { reader_.set_limit(largest_frame); }
  // Throws io if the other side has gone, timeout if it does not read.
  void send(FrameKind kind, std::span<const std::byte> body, Deadline deadline);
  void send(const Frame& frame, Deadline deadline) { send(frame.kind, frame.body, deadline); }
  // send() of what is answered: if the other side has ended, receive() says so, or finds the reason that it gave.
  void ask(FrameKind kind, std::span<const std::byte> body, Deadline deadline);
  // Nothing more is sent: the other side reads what was, and then the end.
  void end_sending() noexcept;
  // Until the other side has ended, too; what it sends is dropped. TCP loses what it has not sent yet if a socket is
  // closed before all that came has been read; a Unix socket does not, and this returns at once.
  void await_end(Deadline deadline) noexcept;
  // The next arrived frame, without waiting. Throws io ("it has ended") at the end, invalid_input for malformed bytes.
  std::optional<Frame> poll_frame();
  // Throws timeout.
  Frame receive(Deadline deadline);

 private:
  void read_some();

  Descriptor socket_;
  Seal seal_;
  FrameReader reader_;
};

// While this object lives, the waits of this thread poll the function; true ends them with `interrupted`. The innermost
// one counts.
class Interruptible {
 public:
  explicit Interruptible(const std::function<bool()>& interrupted);
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;
  ~Interruptible();

 private:
  const std::function<bool()>* before_;
};
// Also for waits of other kinds.
void throw_if_interrupted();

// Waits until `socket` is ready for `events` of poll(2). False: the deadline passed first.
bool wait_for_socket(int socket, short events, Deadline deadline);

}  // namespace waywiser
