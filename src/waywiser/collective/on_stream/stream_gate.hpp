#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/kernels/block/notice.hpp"

namespace waywiser {

// A stream's kernel of one thread tells the host that the stream has reached the gate, and waits until the host has
// carried out an operation. The stream never continues without it: if the group has failed, or the host is late, the
// kernel traps, or, where the context is kept, ends, and the guard of the call follows. All words are in host memory,
// so that the host never waits for the GPU.
class StreamGate {
 public:
  // `rank`: for messages.
  StreamGate(Platform& platform, Place gpu, int rank);
  // As FusedCollective::keep_context().
  void keep_context(std::uint32_t* word) noexcept;

  // Numbers of places in streams ascend. At close() the stream also waits for open() with its number. `what`: the call.
  std::uint64_t note(Stream& stream);
  std::uint64_t close(Stream& stream, const std::string& what, Seconds deadline);
  // The second of two gates releases its stream only when the first one is open too.
  void open(std::uint64_t number);
  // The last number that a stream has reached; all work enqueued before it has ended.
  std::uint64_t reached() const noexcept;
  // The error of a failed wait, if any. `stopped`: why stop() was called. Callable from any thread.
  std::optional<Error> failure(const std::string& stopped) const;
  // What the host carries out for streams begins in the order in which it was made: whoever asks first whether its
  // place is reached may have come later. The session's lock guards these.
  std::uint64_t take_turn() noexcept { return turns_++; }
  bool has_turn(std::uint64_t turn) const noexcept { return turn == begun_; }
  void pass_turn() noexcept { ++begun_; }
  // Ends all waits for good: they trap.
  void stop() noexcept;

 private:
  struct Words {
    block::Notice notice;
    std::uint64_t reached = 0, open = 0;
  };
  Words& words() const;
  void launch(Stream& stream, bool waits, Seconds deadline);

  const int rank_;
  const Memory memory_;
  std::uint64_t last_ = 0;
  std::uint64_t turns_ = 0, begun_ = 0;
  struct Waiting {
    std::string what;
    Seconds deadline = 0;
    bool opened = false;
  };
  mutable std::mutex mutex_;                  // guards the following
  std::map<std::uint64_t, Waiting> waiting_;  // at closed gates
};

}  // namespace waywiser
