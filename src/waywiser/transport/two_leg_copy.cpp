#include "waywiser/transport/two_leg_copy.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Between two host memories a stream of a GPU does it by a host function.
void copy_on(Stream& stream, Region destination, ConstRegion source) {
  if (destination.place.is_gpu() || source.place.is_gpu()) {
    stream.copy(destination, source);
  } else {
    stream.call([to = destination.data, from = source.data, bytes = source.bytes] { std::memcpy(to, from, bytes); });
  }
}

}  // namespace

TwoLegCopy::TwoLegCopy(Platform& platform, const TwoLegs& legs, Place caller)
    : platform_(platform),
      legs_(legs),
      caller_is_first_(legs.source.is_gpu()),
      started_(platform.create_event(caller)),
      ended_(platform.create_event(legs.second)),
      inner_(platform.open_stream(legs.second)) {
  const Place first = caller_is_first_ ? caller : legs.second;
  const Place second = caller_is_first_ ? legs.second : caller;
  for (int slot = 0; slot < legs.depth; ++slot)
    slots_.push_back({platform.create_event(first), platform.create_event(second)});
}

void TwoLegCopy::put(Region destination, ConstRegion source, Stream& stream) {
  check_put(destination, source);
  if (source.bytes == 0) return;
  const Bytes chunk = legs_.chunk == 0 ? source.bytes : std::min(legs_.chunk, source.bytes);
  grow(chunk);
  begin(stream);
  for (Bytes at = 0; at < source.bytes; at += chunk) {
    const Bytes bytes = std::min(chunk, source.bytes - at);
    move_chunk(destination.slice(at, bytes), source.slice(at, bytes), next_slot_, stream);
    next_slot_ = (next_slot_ + 1) % slots_.size();
  }
  end(stream);
}

void TwoLegCopy::signal(Region flag, std::uint64_t value, Stream& stream) {
  begin(stream);
  second(stream).write_value(flag, value);  // the only one that is sure to reach the destination
  end(stream);
}

void TwoLegCopy::move_chunk(Region destination, ConstRegion source, std::size_t slot, Stream& caller) {
  const Slot& events = slots_[slot];
  const Region buffer = buffers_.back().region().slice(slot * slot_bytes_, source.bytes);
  first(caller).wait(*events.empty);
  copy_on(first(caller), buffer, source);
  first(caller).record(*events.full);
  if (legs_.allocation == Allocation::pageable) first(caller).before_pageable_read();
  second(caller).wait(*events.full);
  copy_on(second(caller), destination, buffer);
  second(caller).record(*events.empty);
}

void TwoLegCopy::begin(Stream& caller) {
  caller.record(*started_);
  inner_->wait(*started_);
}

void TwoLegCopy::end(Stream& caller) {
  inner_->record(*ended_);
  caller.wait(*ended_);
}

void TwoLegCopy::grow(Bytes bytes) {
  if (bytes <= slot_bytes_) return;
  const Bytes wanted = legs_.chunk == 0 ? std::max(bytes, 2 * slot_bytes_) : legs_.chunk;
  buffers_.push_back(platform_.allocate(legs_.buffer, wanted * slots_.size(), legs_.allocation));
  slot_bytes_ = wanted;
}

}  // namespace waywiser
