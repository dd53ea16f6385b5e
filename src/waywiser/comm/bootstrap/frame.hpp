#pragma once

#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/base/seal.hpp"
#include "waywiser/comm/message/wire.hpp"

namespace waywiser {

// Messages between two ranks that are connected: at start-up, and later to report failures. Over TCP all frames after
// the welcome are sealed. On a Unix socket the join follows the hello directly.
enum class FrameKind : std::uint8_t {
  hello = 1,   // the first: protocol version, rank, a random number
  challenge,   // the root's random number
  proof,       // both hashed with the secret, by the member
  welcome,     // and by the root; on a Unix socket empty: the join has arrived
  join,        // an Introduction
  table,       // the introductions of all ranks
  refused,     // the reason; nothing follows
  waiting,     // a rank waits unusually long: which, and its call
  failed,      // the group has failed: the kind of error, and why
  leave,       // a rank has finished: which
  finished,    // all ranks have
  ending,      // how this rank's process ends
  later,       // too many connections: try again later
  halted,      // which rank no longer touches other ranks' memory; down the tree: and which rank has asked
  ask_halted,  // a rank is to be told when another has halted: which, and who asks
  share,       // something of a rank for all others, while the group forms
  shared,      // of all ranks
  branch,      // where the rank above listens, which has the table; empty: on this machine
  parted       // which rank no longer needs the others, if it ends well
};
inline constexpr std::uint8_t last_frame_kind = 19;

struct Frame {
  FrameKind kind = FrameKind::hello;
  std::vector<std::byte> body;
};

// Assembles frames from arriving bytes. Malformed frames throw invalid_input before anything is allocated for them.
class FrameReader {
 public:
  // Rejects bodies over `most` bytes.
  explicit FrameReader(std::size_t most) : most_(most) {}
  void set_limit(std::size_t most) noexcept { most_ = most; }
  // All later frames are sealed.
  void expect_seal(Seal* seal) noexcept { seal_ = seal; }

  void feed(std::span<const std::byte> bytes) { pending_.insert(pending_.end(), bytes.begin(), bytes.end()); }
  // The next frame; nothing if it is not complete yet.
  std::optional<Frame> next();

 private:
  struct Head {
    FrameKind kind = FrameKind::hello;
    std::size_t length = 0;
  };
  std::optional<Head> read_head();

  std::size_t most_;
  Seal* seal_ = nullptr;
  std::optional<Head> head_;        // of the frame whose body comes
  std::vector<std::byte> pending_;  // behind it
};

// What precedes the body.
std::vector<std::byte> frame_head(FrameKind kind, std::size_t length);
std::vector<std::byte> frame_bytes(FrameKind kind, std::span<const std::byte> body);
// Encrypts the body and appends the authentication tag.
void seal_frame(std::vector<std::byte>& frame, Seal& seal);
Frame refused_frame(const std::string& why);
// The text of a refused frame: at most 1000 characters, without control characters.
std::string reason_in(const Frame& frame);
Frame failed_frame(ErrorKind kind, const std::string& why);
// The same of a failed frame, as an error of its kind.
Error error_in(const Frame& frame);

}  // namespace waywiser
