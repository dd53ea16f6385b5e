#pragma once

#include "waywiser/measure/flags.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// Flags between two machines: messages on the control connection. They take tens of microseconds, so they cannot time
// short operations.
class ChannelFlags : public Flags {
 public:
  explicit ChannelFlags(PeerChannel& channel) : channel_(channel) {}
  void tell() override;
  void wait(Deadline deadline, const std::function<void()>& idle = {}) override;

 private:
  PeerChannel& channel_;
};

}  // namespace waywiser
