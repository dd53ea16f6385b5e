#include "waywiser/collective/proxy/staged_copies.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"

namespace waywiser {
namespace {

Bytes total(const std::vector<Region>& pieces) {
  Bytes total = 0;
  for (const Region& piece : pieces) total += piece.bytes;
  return total;
}

}  // namespace

StagedCopies::StagedCopies(Session& session, std::vector<Region> pieces)
    : session_(session), pieces_(std::move(pieces)) {
  const Bytes bytes = total(pieces_);
  if (bytes == 0) return;
  gpu_ = pieces_.front().place;
  if (!gpu_.is_gpu()) {
    on_host_ = pieces_.front();
    return;
  }
  memory_ = session.gpu_connections().pool().take(gpu_.index, bytes);
  on_host_ = memory_.region().slice(0, bytes);
}

StagedCopies::~StagedCopies() {
  if (memory_ && (!copied_ || ended(*copied_))) session_.gpu_connections().pool().give_back(std::move(memory_));
}

void StagedCopies::copy(bool to_host) {
  if (!memory_) return;
  Stream& stream = session_.gpu_connections().stream(gpu_);
  copied_ = session_.platform().create_event(gpu_);
  Bytes at = 0;
  for (const Region& piece : pieces_) {
    const Region there = on_host_.slice(at, piece.bytes);
    at += piece.bytes;
    if (piece.bytes == 0) continue;
    to_host ? stream.copy(there, piece) : stream.copy(piece, there);
  }
  stream.record(*copied_);
}

void StagedCopies::abandon() noexcept {
  if (copied_)
    session_.engine().held().add_own(static_cast<std::uint32_t>(session_.rank()),
                                     [copied = copied_] { return ended(*copied); });
}

}  // namespace waywiser
