#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/base/seal.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// An open socket to the other process; with keys if the kernel does not authenticate that process.
struct PeerSocket {
  PeerSocket(Descriptor open, const Seal& keys = {})
      : socket(std::move(open)), seal(keys) {}  // NOLINT(google-explicit-constructor)
  Descriptor socket;
  Seal seal;
};

// The control connection between the two processes of a two-process path: small JSON messages over a Unix socket pair,
// with file descriptors attached; between two machines over TCP, sealed and without descriptors. Not for data. Messages
// are bounded (1 MiB, 8 descriptors); every wait has a deadline.
class PeerChannel {
 public:
  static constexpr Bytes largest_message = 1 << 20;
  static constexpr std::size_t most_descriptors = 8;

  explicit PeerChannel(PeerSocket line);

  // Throws invalid_input (too large), timeout, or io if the peer has gone ("the peer process ended").
  void send(const Json& message, Deadline deadline, const std::vector<int>& descriptors = {});
  // Also throws invalid_input if the received bytes are not a message.
  std::pair<Json, std::vector<Descriptor>> receive(Deadline deadline);

  // Both sides call it: each gets what the other gave.
  Json exchange(const Json& mine, Deadline deadline);

  // Whether a message has arrived, or the peer has gone; waits for it until the deadline.
  bool readable(Deadline deadline = Deadline::in(0)) const noexcept;
  // Polls without waiting. Messages that the peer sent before it ended can still be received.
  bool peer_ended() const noexcept;

  // While a line beside this one waits for the peer: throws io when the peer has ended, timeout when the deadline has
  // passed; lets others run. `name`: of what waits.
  void look(const std::string& name, Deadline deadline) const;

  static std::pair<Descriptor, Descriptor> socket_pair();

 private:
  Descriptor socket_;
  Seal seal_;
};

}  // namespace waywiser
