#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "waywiser/comm/session/session.hpp"
#include "waywiser/transport/ucx_staged/staged_messages.hpp"

namespace waywiser {

// Carries the pieces of one message to or from one rank.
class ChunkMessages final : public ChunkConnection {
 public:
  ChunkMessages(Session& session, std::uint32_t peer, Tag tag) : session_(session), peer_(peer), tag_(tag) {}
  // Uses one of the plan's ways between machines instead of UCX's default.
  void go_by(std::size_t way) { way_ = way; }

  void send(ConstRegion piece) override;
  void receive(Region piece) override;
  std::uint64_t sent() override;
  std::uint64_t received() override;
  void cancel() noexcept;
  bool is_open() const noexcept;

 private:
  struct Piece {
    Bytes bytes;
    Message message = {};
  };
  bool end_first();

  Session& session_;
  std::uint32_t peer_;
  Tag tag_;
  std::optional<std::size_t> way_;
  std::deque<Piece> pieces_;  // under way
  std::uint64_t ended_ = 0;
};

// One message in pieces through host memory: while one piece is copied, the next is in flight. Used by the sender,
// whose bytes are on a GPU, and by the receiver, whose array may be on a GPU or a host.
class ChunkedMessage {
 public:
  ChunkedMessage(Session& session, std::uint32_t peer, Tag tag)
      : session_(session), peer_(peer), line_(session, peer, tag) {}
  // Call it before the first piece: uses one of the plan's ways between machines, staged as that way says, or not at
  // all.
  void go_by(std::size_t way);

  // Each call continues without waiting. True: complete.
  bool send(ConstRegion source);
  bool receive(Region destination);
  std::string progress_text(const char* what) const;
  void abandon() noexcept;
  bool is_open() const noexcept { return line_.is_open(); }

 private:
  template <typename Direction>
  bool advance(Region message);

  Session& session_;
  std::uint32_t peer_;
  ChunkMessages line_;
  StagingShape shape_{Allocation::pinned, Bytes{1} << 20, 4};
  bool at_once_ = false;  // UCX reads and writes the GPUs itself
  std::unique_ptr<StagingRing> ring_;
  std::unique_ptr<StagedMessages> messages_;  // one
};

}  // namespace waywiser
