#pragma once

#include <deque>

#include "waywiser/transport/ucx/chunk_connection.hpp"
#include "waywiser/transport/ucx_staged/staging_ring.hpp"

namespace waywiser {

// One direction of a connection: messages cut into chunks. If this end's memory is on a GPU that the connection cannot
// access, each chunk passes through a ring of buffers. Both ends cut alike. Used by measurements and groups.
class StagedMessages {
 public:
  // `ring`: nullptr if the connection accesses the memory itself.
  StagedMessages(ChunkConnection& line, const StagingShape& shape, StagingRing* ring)
      : line_(line), shape_(shape), ring_(ring) {}
  virtual ~StagedMessages() = default;

  // `stream`: for the copies; nullptr if there are none.
  void add(Region message, Stream* stream);
  // Does what can be done without waiting.
  virtual void advance() = 0;
  bool done() const noexcept { return chunks_.empty(); }
  std::uint64_t chunks_done() const noexcept { return first_; }

 protected:
  struct Chunk {
    Region memory;
    Stream* stream;
    Region buffer = {};
  };

  // Chunks are numbered from the very first one, like the connection's messages.
  Chunk& chunk(std::uint64_t number) { return chunks_[number - first_]; }
  std::uint64_t added() const noexcept { return first_ + chunks_.size(); }
  bool staged(std::uint64_t number) { return ring_ != nullptr && chunk(number).memory.place.is_gpu(); }
  bool has_room(std::uint64_t number) {
    return number - first_ < (staged(number) ? ring_->depth() : most_without_ring);
  }
  bool copied(std::uint64_t number) { return !staged(number) || ring_->copied(number).done(); }
  void copy(std::uint64_t number, Region destination, ConstRegion source);
  Region buffer(std::uint64_t number);
  void drop_before(std::uint64_t number);

  static constexpr std::uint64_t most_without_ring = 64;  // as deep as a ring may be

  ChunkConnection& line_;
  const StagingShape shape_;
  StagingRing* ring_;
  std::deque<Chunk> chunks_;
  std::uint64_t first_ = 0;  // number of the first in the list
};

// Outgoing: copied into a buffer, sent, done.
class StagedSends : public StagedMessages {
 public:
  using StagedMessages::StagedMessages;
  void advance() override;

 private:
  std::uint64_t copying_ = 0, sending_ = 0;  // how many have begun to
};

// Incoming: received in a buffer, copied, done.
class StagedReceives : public StagedMessages {
 public:
  using StagedMessages::StagedMessages;
  void advance() override;

 private:
  std::uint64_t receiving_ = 0, copying_ = 0;
};

}  // namespace waywiser
