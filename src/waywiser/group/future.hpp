#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "waywiser/comm/data_type.hpp"

namespace waywiser {

class Activity;
class BeginMode;
class GroupCore;
class Stream;

// When a call is complete.
class Mode {
 public:
  // When it returns.
  static const Mode wait;
  // When the returned future is complete. Until then the arrays must live, and must not overlap unless they are the
  // same. Where kernels or NCCL serve a collective of GPU arrays, it runs in a stream of the group; earlier work on the
  // arrays must be complete. Other collectives of GPU arrays go through host memory, for the reason of why_staged().
  // The first call on GPUs, and the first one that needs more memory there, wait for all ranks.
  static const BeginMode begin;
  // When the stream has run it: the call is enqueued behind earlier work of the stream, which must belong to the
  // arrays' GPU.
  static constexpr Mode on(Stream& stream) noexcept { return Mode(&stream, false); }

  constexpr Stream* stream() const noexcept { return stream_; }  // nullptr: none
  constexpr bool begins() const noexcept { return begins_; }

 private:
  friend class BeginMode;
  constexpr Mode(Stream* stream, bool begins) noexcept : stream_(stream), begins_(begins) {}

  Stream* stream_;
  bool begins_;
};

inline constexpr Mode Mode::wait{nullptr, false};

// A type of its own, so that the compiler warns where the future of such a call is thrown away.
class BeginMode {
 public:
  constexpr operator Mode() const noexcept { return Mode(nullptr, true); }

 private:
  friend class Mode;
  constexpr BeginMode() noexcept = default;
};

inline constexpr BeginMode Mode::begin{};

// In place of a rank, and of a tag: any. Far from all ranks, so that rank - 1 is not one of them by accident.
inline constexpr int any_source = -32769, any_tag = -32770;

// What a receive has taken, or what a probe has found.
struct MessageStatus {
  int source = any_source;
  int tag = any_tag;
  DataType type = DataType::uint8;
  std::size_t count = 0;  // elements
};

// What a call returns: complete, unless the call has only begun (Mode::begin). The memory given to such a call must
// live until the future is done. If the future is destroyed earlier, the operation ends and the group fails, unless the
// future keeps the memory (keep()): then the operation continues.
class [[gnu::visibility("default")]] Future {
 public:
  Future() = default;  // done
  // nullptr: done.
  Future(std::shared_ptr<GroupCore> group, std::shared_ptr<Activity> operation);
  Future(Future&& other) noexcept = default;
  Future& operator=(Future&& other) noexcept {
    if (operation_) drop();
    group_ = std::move(other.group_);
    operation_ = std::move(other.operation_);
    return *this;
  }
  ~Future() {
    if (operation_) drop();
  }

  // The last known state, without polling.
  bool is_under_way() const noexcept { return operation_ != nullptr; }
  // The operation keeps `owner`, the owner of its memory, until it is over, even if this future is destroyed.
  void keep(std::shared_ptr<void> owner);

  // Gives all operations of the group a turn. Throws what wait() would.
  bool done();
  // Throws timeout; io if the group has failed; invalid_input if the ranks' calls do not match.
  void wait();

 private:
  void finish() noexcept;
  void drop() noexcept;
  friend std::size_t wait_any(std::span<Future* const> futures);

  std::shared_ptr<GroupCore> group_;
  std::shared_ptr<Activity> operation_;
};

// Waits for each. Throws what wait() of the first one would that throws.
[[gnu::visibility("default")]] void wait_all(std::span<Future> futures);
// Waits until one is done, and returns the place of the first that is: the caller leaves it out the next time, or
// passes nullptr in its place. Throws as Future::wait(); invalid_input if there is none, or if they are of two ranks.
[[gnu::visibility("default")]] std::size_t wait_any(std::span<Future* const> futures);
[[gnu::visibility("default")]] std::size_t wait_any(std::span<Future> futures);

}  // namespace waywiser
