#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace waywiser {

// One direction between two ranks of a machine: a ring of lines in memory that both have mapped, with one writer and
// one reader. A message stands in one piece of whole lines; the first word of a line is 0 unless one begins there. Two
// lines are one of the cache: each that goes to the other core costs more than all that is done with it.
inline constexpr std::size_t line_bytes = 32, lane_lines = 1024;
// As many are used while the reader keeps up: those of both directions stay in the first cache.
inline constexpr std::size_t near_lines = 192;
inline constexpr std::size_t cache_line = 64;
inline constexpr std::size_t longest_short = 8192;

struct alignas(line_bytes) Line {
  std::array<std::byte, line_bytes> bytes;
};

struct LaneMemory {
  alignas(cache_line) std::atomic<std::uint64_t> taken;  // lines that the reader is done with
  alignas(cache_line) std::array<Line, lane_lines> lines;
};

// What a message begins with; its bytes follow.
struct LaneHead {
  enum State : std::uint32_t { nothing, message, rest_unused };
  std::uint32_t state;
  std::uint32_t bytes;
  std::uint64_t tag;
};
static_assert(sizeof(LaneHead) == 16 && std::atomic_ref<std::uint32_t>::is_always_lock_free);

class LaneWriter {
 public:
  explicit LaneWriter(LaneMemory* memory = nullptr) : memory_(memory) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  // False: there is no room until the reader has taken more.
  bool write(std::uint64_t tag, const std::byte* data, std::size_t bytes) noexcept {
    const std::size_t lines = (sizeof(LaneHead) + bytes + line_bytes - 1) / line_bytes;
    const std::size_t to_end = lane_lines - written_ % lane_lines;
    const std::size_t skipped = lines > to_end || may_turn_back(lines) ? to_end : 0;
    if (!has_room(skipped + lines)) return false;
    if (skipped != 0) publish(head(), LaneHead::rest_unused);
    written_ += skipped;
    LaneHead* begin = head();
    begin->bytes = static_cast<std::uint32_t>(bytes);
    begin->tag = tag;
    if (bytes != 0) std::memcpy(begin + 1, data, bytes);
    publish(begin, LaneHead::message);
    written_ += lines;
    __builtin_prefetch(&memory_->lines[(written_ + lines_ahead) % lane_lines], 1);  // to be this core's by then
    return true;
  }

 private:
  static constexpr std::size_t lines_ahead = 8;

  // Asked once a round: while the reader keeps up, the first lines are enough. What is left out counts as written.
  bool may_turn_back(std::size_t lines) noexcept {
    const bool is_far = written_ % lane_lines >= std::max(near_lines, lines);
    if (std::exchange(was_far_, is_far) || !is_far) return false;
    taken_ = memory_->taken.load(std::memory_order_acquire);
    was_far_ = taken_ != written_;
    return !was_far_;
  }
  bool has_room(std::size_t lines) noexcept {
    if (written_ + lines - taken_ <= lane_lines) return true;
    taken_ = memory_->taken.load(std::memory_order_acquire);
    return written_ + lines - taken_ <= lane_lines;
  }
  LaneHead* head() noexcept { return reinterpret_cast<LaneHead*>(&memory_->lines[written_ % lane_lines]); }
  static void publish(LaneHead* head, LaneHead::State state) noexcept {
    std::atomic_ref(head->state).store(state, std::memory_order_release);
  }

  LaneMemory* memory_;
  std::uint64_t written_ = 0, taken_ = 0;
  bool was_far_ = false;
};

class LaneReader {
 public:
  explicit LaneReader(LaneMemory* memory = nullptr) : memory_(memory) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  // The next message, until pop(); nullptr when there is none.
  const LaneHead* peek() noexcept {
    LaneHead* begin = head();
    const std::uint32_t state = std::atomic_ref(begin->state).load(std::memory_order_acquire);
    if (state == LaneHead::nothing) return nullptr;
    if (state == LaneHead::message) return begin;
    begin->state = LaneHead::nothing;  // in the lines up to the end nothing stands
    read_ += lane_lines - read_ % lane_lines;
    memory_->taken.store(read_, std::memory_order_release);
    return peek();
  }
  void pop() noexcept {
    const std::size_t lines = (sizeof(LaneHead) + head()->bytes + line_bytes - 1) / line_bytes;
    for (std::size_t i = 0; i < lines; ++i, ++read_) head()->state = LaneHead::nothing;
    memory_->taken.store(read_, std::memory_order_release);
  }

 private:
  LaneHead* head() noexcept { return reinterpret_cast<LaneHead*>(&memory_->lines[read_ % lane_lines]); }

  LaneMemory* memory_;
  std::uint64_t read_ = 0;
};

}  // namespace waywiser
