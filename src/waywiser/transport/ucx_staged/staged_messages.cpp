#include "waywiser/transport/ucx_staged/staged_messages.hpp"

#include <algorithm>

namespace waywiser {

void StagedMessages::add(Region message, Stream* stream) {
  const Bytes most = shape_.chunk_of(message.bytes);
  Bytes at = 0;
  do {
    const Bytes bytes = std::min(most, message.bytes - at);
    chunks_.push_back({message.slice(at, bytes), stream, {}});
    at += bytes;
  } while (at < message.bytes);
}

Region StagedMessages::buffer(std::uint64_t number) {
  Chunk& one = chunk(number);
  return one.buffer = staged(number) ? ring_->buffer(number, one.memory.bytes) : one.memory;
}

void StagedMessages::copy(std::uint64_t number, Region destination, ConstRegion source) {
  if (!staged(number)) return;
  Stream& stream = *chunk(number).stream;
  if (source.bytes != 0) stream.copy(destination, source);
  stream.record(ring_->copied(number));
}

void StagedMessages::drop_before(std::uint64_t number) {
  while (first_ < number) {
    chunks_.pop_front();
    ++first_;
  }
}

void StagedSends::advance() {
  for (; copying_ < added() && has_room(copying_); ++copying_) {
    const Region into = buffer(copying_);
    copy(copying_, into, chunk(copying_).memory);
  }
  for (; sending_ < copying_ && copied(sending_); ++sending_) line_.send(chunk(sending_).buffer);
  drop_before(line_.sent());
}

void StagedReceives::advance() {
  for (; receiving_ < added() && has_room(receiving_); ++receiving_) line_.receive(buffer(receiving_));
  for (const std::uint64_t here = line_.received(); copying_ < here; ++copying_)
    copy(copying_, chunk(copying_).memory, chunk(copying_).buffer);
  std::uint64_t landed = first_;
  while (landed < copying_ && copied(landed)) ++landed;
  drop_before(landed);
}

}  // namespace waywiser
