#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// How bytes travel through a buffer between source and destination.
struct TwoLegs {
  Place source;  // performs the first leg if it is a GPU
  Place destination;
  Place buffer;
  Allocation allocation = Allocation::pinned;
  Place second;     // the GPU of the second leg, or of both if the source is host memory
  Bytes chunk = 0;  // 0: each put as a whole, in a buffer as large as the put
  int depth = 1;    // buffers of one chunk in use at the same time
};

// Copies in chunks: while one chunk leaves its buffer for the destination, the next one arrives. The caller's stream
// performs one leg and an inner stream the other; events keep the order of the caller's stream.
class TwoLegCopy {
 public:
  // `caller`: where the streams given to put() are.
  TwoLegCopy(Platform& platform, const TwoLegs& legs, Place caller);

  void put(Region destination, ConstRegion source, Stream& stream);
  void signal(Region flag, std::uint64_t value, Stream& stream);

 private:
  struct Slot {
    std::unique_ptr<Event> full;   // recorded on the first leg's stream
    std::unique_ptr<Event> empty;  // recorded on the second leg's stream
  };

  Stream& first(Stream& caller) { return caller_is_first_ ? caller : *inner_; }
  Stream& second(Stream& caller) { return caller_is_first_ ? *inner_ : caller; }
  void begin(Stream& caller);  // inner work comes after what the caller enqueued
  void end(Stream& caller);    // and before what the caller enqueues from now on
  void grow(Bytes bytes);
  void move_chunk(Region destination, ConstRegion source, std::size_t slot, Stream& caller);

  Platform& platform_;
  TwoLegs legs_;
  bool caller_is_first_;
  std::unique_ptr<Event> started_;
  std::unique_ptr<Event> ended_;
  std::vector<Slot> slots_;
  std::size_t next_slot_ = 0;
  Bytes slot_bytes_ = 0;
  std::vector<Memory> buffers_;    // the last one is in use; work in flight may still use the others
  std::unique_ptr<Stream> inner_;  // goes first
};

}  // namespace waywiser
