#include "waywiser/comm/pieces.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Bytes piece_bytes = Bytes{1} << 20;

Bytes pieces_of(Bytes bytes) { return (bytes + piece_bytes - 1) / piece_bytes; }
Bytes length_of(Bytes piece, Bytes bytes) { return std::min(piece_bytes, bytes - piece * piece_bytes); }

}  // namespace

Pieces::~Pieces() {
  for (Slot& slot : slots_)
    if (slot.memory) session_.gpu_roads().pool().give_back(std::move(slot.memory));
}

void Pieces::prepare(Slot& slot, Place gpu, Bytes bytes) {
  if (!slot.memory) slot.memory = session_.gpu_roads().pool().take(gpu.index, bytes);
  if (!slot.copied) slot.copied = session_.platform().create_event(gpu);
}

void Pieces::copy(Slot& slot, Region destination, ConstRegion source, Place gpu) {
  Stream& stream = session_.gpu_roads().stream(gpu);
  stream.copy(destination, source);
  stream.record(*slot.copied);
}

bool Pieces::send(ConstRegion source) {
  const Bytes pieces = pieces_of(source.bytes);
  for (; begun_ < pieces && begun_ < ended_ + depth; ++begun_) {
    const Bytes bytes = length_of(begun_, source.bytes);
    prepare(slot(begun_), source.place, std::min(piece_bytes, source.bytes));
    copy(slot(begun_), slot(begun_).memory.region().slice(0, bytes), source.slice(begun_ * piece_bytes, bytes),
         source.place);
  }
  for (; passed_ < begun_ && slot(passed_).copied->done(); ++passed_)
    session_.engine().send(peer_, tag_, slot(passed_).memory.region().data, length_of(passed_, source.bytes),
                           slot(passed_).message);
  while (ended_ < passed_ && session_.engine().test(slot(ended_).message)) ++ended_;
  return ended_ == pieces;
}

bool Pieces::receive(Region destination) {
  const Bytes pieces = pieces_of(destination.bytes);
  const bool on_gpu = destination.place.is_gpu();
  const auto part = [&](Bytes piece) {
    return destination.slice(piece * piece_bytes, length_of(piece, destination.bytes));
  };
  for (; begun_ < pieces && begun_ < ended_ + depth; ++begun_) {
    if (on_gpu) prepare(slot(begun_), destination.place, std::min(piece_bytes, destination.bytes));
    std::byte* into = on_gpu ? slot(begun_).memory.region().data : part(begun_).data;
    session_.engine().receive(tag_, matched_bits, into, part(begun_).bytes, slot(begun_).message);
  }
  for (; passed_ < begun_ && session_.engine().test(slot(passed_).message); ++passed_) {
    check_length(slot(passed_).message, part(passed_).bytes);
    if (on_gpu)
      copy(slot(passed_), part(passed_), slot(passed_).memory.region().slice(0, part(passed_).bytes),
           destination.place);
  }
  while (ended_ < passed_ && (!on_gpu || slot(ended_).copied->done())) ++ended_;
  return ended_ == pieces;
}

void Pieces::check_length(const Message& message, Bytes bytes) const {
  if (message.info.length != bytes)
    session_.fail(ErrorKind::corrupt, "a piece of " + std::to_string(message.info.length) + " bytes came instead of " +
                                          std::to_string(bytes));
}

std::string Pieces::progress_text(const char* what) const {
  return std::to_string(ended_ * piece_bytes) + " bytes " + what;
}

void Pieces::abandon() noexcept {
  for (Slot& slot : slots_) session_.engine().cancel(slot.message);
}

}  // namespace waywiser
