#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/device/descriptor.hpp"

namespace waywiser {

// The control line between the two processes of a two-process path: small JSON messages with file descriptors
// attached, over a Unix socket pair. Not for data. Bounded messages (1 MiB), every wait with a deadline.
class PeerChannel {
 public:
  explicit PeerChannel(Descriptor socket);

  void send(const Json& message, Deadline deadline, const std::vector<int>& descriptors = {});
  // Throws timeout, or io when the peer has gone ("the peer process ended").
  std::pair<Json, std::vector<Descriptor>> receive(Deadline deadline);

  // Both sides call it: each gets what the other gave.
  Json exchange(const Json& mine, Deadline deadline);

  static std::pair<Descriptor, Descriptor> socket_pair();

 private:
  Descriptor socket_;
};

}  // namespace waywiser
