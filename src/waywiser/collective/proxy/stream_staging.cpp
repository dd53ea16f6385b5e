#include "waywiser/collective/proxy/stream_staging.hpp"

namespace waywiser {
namespace {

constexpr Bytes most_taken = Bytes{256} << 20;  // by a program far ahead of its stream
constexpr Bytes most_kept = 2 * most_taken;     // what a program with arrays of up to `most_taken` ever takes

}  // namespace

StreamStaging::StreamStaging(Platform& platform, Place gpu) : pool_(platform, most_kept), gpu_(gpu) {}

std::shared_ptr<const Memory> StreamStaging::take(Bytes bytes) {
  taken_.push_back({std::make_shared<Memory>(pool_.take(gpu_.index, bytes)), {}});
  return taken_.back().memory;
}

void StreamStaging::note_end(Stream& stream) {
  std::shared_ptr<Event> end;
  for (Taken& each : taken_) {
    if (each.end) continue;
    if (!end) {
      end = pool_.platform().create_event(gpu_);
      stream.record(*end);
    }
    each.end = end;
  }
}

void StreamStaging::reclaim() {
  std::erase_if(taken_, [this](Taken& each) {
    if (!each.end || each.memory.use_count() > 1 || !each.end->done()) return false;
    if (Memory surplus = pool_.give_back(std::move(*each.memory))) surplus_.push_back(std::move(surplus));
    return true;
  });
}

bool StreamStaging::is_full() const {
  Bytes bytes = 0;
  for (const Taken& each : taken_) bytes += each.memory->region().bytes;
  return bytes > most_taken;
}

StagedPieces::StagedPieces(StreamStaging& staging, std::vector<Region> pieces) : pieces_(std::move(pieces)) {
  Bytes bytes = 0;
  for (const Region& piece : pieces_) bytes += piece.bytes;
  if (bytes == 0) return;
  if (!pieces_.front().place.is_gpu()) {
    on_host_ = pieces_.front();
    return;
  }
  memory_ = staging.take(bytes);
  on_host_ = memory_->region().slice(0, bytes);
}

void StagedPieces::copy(Stream& stream, bool to_host) const {
  if (!memory_) return;
  Bytes at = 0;
  for (const Region& piece : pieces_) {
    const Region there = on_host_.slice(at, piece.bytes);
    at += piece.bytes;
    if (piece.bytes == 0) continue;
    to_host ? stream.copy(there, piece) : stream.copy(piece, there);
  }
}

}  // namespace waywiser
