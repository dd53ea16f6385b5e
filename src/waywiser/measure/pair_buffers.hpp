#pragma once

#include "waywiser/measure/flags.hpp"
#include "waywiser/path/path.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The path that brings bytes back. Between a GPU and the host, push becomes pull.
Path reversed(const Path& path);
// The path as `role` sends on it: the initiator owns the source, the peer the destination.
Path outgoing_path(const Path& path, Role role);

// Identifies the memory that a path needs; paths with equal keys share buffers.
std::string buffers_key(const Path& path);

// The buffers of one process for a pair: bytes to send, a destination for the other's bytes, and the other's
// destination as opened here (one-sided mechanisms).
class PairBuffers {
 public:
  PairBuffers(Platform& platform, const Path& path, Role role, Bytes capacity, Deadline deadline);

  // Both processes call it; each gets the other's destination. Two-sided mechanisms need none.
  void share(PeerChannel& channel, Deadline deadline);

  Bytes capacity() const noexcept { return capacity_; }
  Region outgoing() const { return outgoing_.region(); }
  Region landing() const { return landing_.region(); }
  // The destination of this side's puts; without an address if the mechanism is two-sided.
  Region remote() const { return shared_ ? remote_.region() : Region{nullptr, capacity_, remote_place_}; }

 private:
  void touch(Deadline deadline);

  Platform& platform_;
  Bytes capacity_;
  bool shared_;
  Place remote_place_;
  Place user_;  // the GPU that reaches the remote memory
  Memory outgoing_, landing_, remote_;
};

}  // namespace waywiser
