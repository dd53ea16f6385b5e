#pragma once

#include <sys/types.h>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// The other side of a measurement: a second process of this machine, or one of another machine.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual PeerChannel& channel() noexcept = 0;
  // -1: it is on another machine.
  virtual pid_t id() const noexcept { return -1; }
};

// A peer whose control connection is already open.
class DistantPeer : public Peer {
 public:
  explicit DistantPeer(PeerSocket line) : channel_(std::move(line)) {}
  PeerChannel& channel() noexcept override { return channel_; }

 private:
  PeerChannel channel_;
};

}  // namespace waywiser
