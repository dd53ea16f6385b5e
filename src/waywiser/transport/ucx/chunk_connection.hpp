#pragma once

#include <cstdint>

#include "waywiser/device/region.hpp"

namespace waywiser {

// Carries chunks of messages between two machines, in order. Both ends know their lengths.
class ChunkConnection {
 public:
  virtual ~ChunkConnection() = default;
  // Start a chunk. The region must stay unchanged until the chunk is done.
  virtual void send(ConstRegion chunk) = 0;
  virtual void receive(Region chunk) = 0;
  // How many of the started chunks are done, in order.
  virtual std::uint64_t sent() = 0;
  virtual std::uint64_t received() = 0;
};

}  // namespace waywiser
