#pragma once

#include <optional>

#include "waywiser/base/seal.hpp"
#include "waywiser/comm/bootstrap/wire.hpp"

namespace waywiser {

// Messages between a rank and the root: at the start-up, and later to tell of failures. Over TCP all that follow the
// welcome are sealed. On a Unix socket a join follows the hello at once.
enum class FrameKind : std::uint8_t {
  hello = 1,  // the first: protocol version, rank, a random number
  challenge,  // the root's random number
  proof,      // both hashed with the secret, by the member
  welcome,    // and by the root; on a Unix socket empty: the join has come
  join,       // an Introduction
  table,      // the introductions of all ranks
  refused,    // why; nothing follows
  waiting,    // a rank waits unusually long: its CallRecord
  failed,     // the group has failed: why
  leave,      // a rank has finished
  finished,   // all ranks have
  ending,     // a rank's process ends: how; empty: it needs the others no more, if it ends well
  later,      // too many are here: come again
  halted,     // a rank touches nobody's memory any more; of the root: which one
  ask_halted  // tell this rank when that one has
};
inline constexpr std::uint8_t last_frame_kind = 15;

struct Frame {
  FrameKind kind = FrameKind::hello;
  std::vector<std::byte> body;
};

// Puts frames together from bytes as they come. Bad ones throw invalid_input before anything is allocated for them.
class FrameReader {
 public:
  // Bodies over `most` bytes are refused.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void set_limit(std::size_t most) noexcept { most_ = most; }
  // From the next frame on each is sealed.
  void expect_seal(Seal* seal) noexcept { seal_ = seal; }

  void feed(std::span<const std::byte> bytes) { pending_.insert(pending_.end(), bytes.begin(), bytes.end()); }
  // The next frame, or nothing while it is not all there.
  std::optional<Frame> next();

 private:
  std::size_t most_;
  Seal* seal_ = nullptr;
  std::vector<std::byte> pending_;
};

std::vector<std::byte> frame_bytes(FrameKind kind, std::span<const std::byte> body);
// Encrypts the body, and adds the mark.
void seal_frame(std::vector<std::byte>& frame, Seal& seal);
Frame refused_frame(const std::string& why);
// What a refused or failed frame says: at most 1000 characters without control characters.
std::string reason_in(const Frame& frame);

}  // namespace waywiser
