#include "waywiser/comm/pieces.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/fault_point.hpp"
#include "waywiser/transport/ucx_staged/ucx_staged.hpp"

namespace waywiser {

Pieces::~Pieces() {
  for (Slot& slot : slots_)
    if (slot.memory) session_.gpu_roads().pool().give_back(std::move(slot.memory), shape_.allocation);
}

void Pieces::go_by(std::size_t way) {
  const NetworkWay& found = session_.engine().ways().all()[way];
  way_ = way;
  at_once_ = found.reads_gpus();
  if (!at_once_) shape_ = staging_shape(found.path);
}

Bytes Pieces::length_of(Bytes piece, Bytes bytes) const {
  return std::min(piece_bytes(bytes), bytes - piece * piece_bytes(bytes));
}

// How many pieces there are.
Bytes Pieces::begin(Bytes bytes) {
  const Bytes size = piece_bytes(bytes), pieces = (bytes + size - 1) / size;
  if (slots_.empty()) slots_.resize(std::min(pieces, static_cast<Bytes>(shape_.depth)));
  return pieces;
}

void Pieces::prepare(Slot& slot, Place gpu, Bytes bytes) {
  if (!slot.memory) slot.memory = session_.gpu_roads().pool().take(gpu.index, bytes, shape_.allocation);
  if (!slot.copied) slot.copied = session_.platform().create_event(gpu);
}

void Pieces::post_send(Slot& slot, ConstRegion part) {
  if (way_) return session_.engine().send_by(*way_, peer_, tag_, part, slot.message);
  fault_point(ProtocolStep::piece);
  session_.engine().send(peer_, tag_, part.data, part.bytes, slot.message);
}

void Pieces::post_receive(Slot& slot, Region part) {
  if (way_) return session_.engine().receive_by(*way_, peer_, tag_, part, slot.message);
  session_.engine().receive(peer_, tag_, matched_bits, part.data, part.bytes, slot.message);
}

void Pieces::copy(Slot& slot, Region destination, ConstRegion source, Place gpu) {
  Stream& stream = session_.gpu_roads().stream(gpu);
  stream.copy(destination, source);
  stream.record(*slot.copied);
}

bool Pieces::send(ConstRegion source) {
  const Bytes pieces = begin(source.bytes), size = piece_bytes(source.bytes);
  const bool through_host = staged(source.place);
  const auto part = [&](Bytes piece) { return source.slice(piece * size, length_of(piece, source.bytes)); };
  const auto buffer = [&](Bytes piece) { return slot(piece).memory.region().slice(0, length_of(piece, source.bytes)); };
  for (; begun_ < pieces && begun_ < ended_ + slots_.size(); ++begun_) {
    if (!through_host) continue;
    prepare(slot(begun_), source.place, size);
    copy(slot(begun_), buffer(begun_), part(begun_), source.place);
  }
  for (; passed_ < begun_ && (!through_host || slot(passed_).copied->done()); ++passed_)
    post_send(slot(passed_), through_host ? buffer(passed_) : part(passed_));
  while (ended_ < passed_ && session_.engine().test(slot(ended_).message)) ++ended_;
  return ended_ == pieces;
}

bool Pieces::receive(Region destination) {
  const Bytes pieces = begin(destination.bytes), size = piece_bytes(destination.bytes);
  const bool through_host = staged(destination.place);
  const auto part = [&](Bytes piece) { return destination.slice(piece * size, length_of(piece, destination.bytes)); };
  const auto buffer = [&](Bytes piece) {
    return slot(piece).memory.region().slice(0, length_of(piece, destination.bytes));
  };
  for (; begun_ < pieces && begun_ < ended_ + slots_.size(); ++begun_) {
    if (through_host) prepare(slot(begun_), destination.place, size);
    post_receive(slot(begun_), through_host ? buffer(begun_) : part(begun_));
  }
  for (; passed_ < begun_ && session_.engine().test(slot(passed_).message); ++passed_) {
    check_length(slot(passed_).message, part(passed_).bytes);
    if (through_host) copy(slot(passed_), part(passed_), buffer(passed_), destination.place);
  }
  while (ended_ < passed_ && (!through_host || slot(ended_).copied->done())) ++ended_;
  return ended_ == pieces;
}

void Pieces::check_length(const Message& message, Bytes bytes) const {
  if (message.info.length != bytes)
    session_.fail(ErrorKind::corrupt, "a piece of " + std::to_string(message.info.length) + " bytes came instead of " +
                                          std::to_string(bytes));
}

std::string Pieces::progress_text(const char* what) const { return std::to_string(ended_) + " pieces " + what; }

void Pieces::abandon() noexcept {
  for (Slot& slot : slots_) {
    session_.engine().cancel(slot.message);
    if (slot.copied) session_.engine().held().add_own(peer_, [&event = *slot.copied] { return ended(event); });
  }
}

bool Pieces::is_open() const noexcept {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.message.is_open(); });
}

}  // namespace waywiser
