#include "waywiser/comm/rendezvous/chunked_message.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/message/tag.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/transport/ucx_staged/ucx_staged.hpp"

namespace waywiser {

void ChunkMessages::send(ConstRegion piece) {
  Message& message = pieces_.emplace_back(piece.bytes).message;
  if (way_) return session_.engine().send_by(*way_, peer_, tag_, piece, message);
  fault_point(ProtocolStep::piece);
  session_.engine().send(peer_, tag_, piece.data, piece.bytes, message);
}

void ChunkMessages::receive(Region piece) {
  Message& message = pieces_.emplace_back(piece.bytes).message;
  if (way_) return session_.engine().receive_by(*way_, peer_, tag_, piece, message);
  session_.engine().receive(peer_, tag_, piece.data, piece.bytes, message);
}

// False: the first piece is still under way, or there is none.
bool ChunkMessages::end_first() {
  if (pieces_.empty() || !session_.engine().test(pieces_.front().message)) return false;
  const Message& message = pieces_.front().message;
  if (message.receiving && message.info.bytes != pieces_.front().bytes)
    session_.fail(ErrorKind::corrupt, "a piece of " + std::to_string(message.info.bytes) + " bytes came instead of " +
                                          std::to_string(pieces_.front().bytes));
  pieces_.pop_front();
  ++ended_;
  return true;
}

std::uint64_t ChunkMessages::sent() {
  while (end_first()) {
  }
  return ended_;
}

std::uint64_t ChunkMessages::received() { return sent(); }

void ChunkMessages::cancel() noexcept {
  for (Piece& piece : pieces_) session_.engine().cancel(piece.message);
}

bool ChunkMessages::is_open() const noexcept {
  return std::ranges::any_of(pieces_, [](const Piece& piece) { return piece.message.is_open(); });
}

void ChunkedMessage::go_by(std::size_t way) {
  const NetworkPath& found = session_.engine().ways().all()[way];
  line_.go_by(way);
  at_once_ = found.reads_gpus();
  shape_ = at_once_ ? StagingShape() : staging_shape(found.path);
}

template <typename Direction>
bool ChunkedMessage::advance(Region message) {
  if (!messages_) {
    const bool staged = message.place.is_gpu() && !at_once_;
    Stream* stream = staged ? &session_.gpus().connections().stream(message.place) : nullptr;
    if (staged) ring_ = std::make_unique<StagingRing>(session_.gpus().connections().pool(), message.place, shape_);
    messages_ = std::make_unique<Direction>(line_, shape_, ring_.get());
    messages_->add(message, stream);
  }
  messages_->advance();
  return messages_->done();
}

bool ChunkedMessage::send(ConstRegion source) {
  return advance<StagedSends>({const_cast<std::byte*>(source.data), source.bytes, source.place});
}

bool ChunkedMessage::receive(Region destination) { return advance<StagedReceives>(destination); }

std::string ChunkedMessage::progress_text(const char* what) const {
  return std::to_string(messages_ ? messages_->chunks_done() : 0) + " pieces " + what;
}

void ChunkedMessage::abandon() noexcept {
  line_.cancel();
  if (!ring_) return;
  for (Event* copied : ring_->events()) session_.engine().held().add_own(peer_, [copied] { return ended(*copied); });
}

}  // namespace waywiser
