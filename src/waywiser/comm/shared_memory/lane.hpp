#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/message/host_message_sizes.hpp"
#include "waywiser/comm/shared_memory/shared_copy.hpp"

namespace waywiser {

// One direction between two ranks of a machine: a ring of units in shared memory, with one writer and one reader. A
// message occupies consecutive whole units; the first word of a unit is 0 unless a message begins there. A cache line
// that moves to the other core costs more than all other work, so several short messages share a line, a message with
// the previous tag omits it, and the reader clears a line when it has finished with all of it.
inline constexpr std::size_t unit_bytes = 8, lane_units = 4096;
inline constexpr std::size_t units_of_line = cache_line / unit_bytes;
// Longer messages have only tag and place there. Their bytes lie in slots, pages of their own that nobody clears: there
// the reader's core does not fetch ahead what the writer is about to write.
inline constexpr std::size_t slot_bytes = 4096, lane_slots = 64;
inline constexpr std::size_t longest_in_units = defaults::lane_units_most;
// While the reader keeps up, only this many units are used: both directions then stay in the L1 cache.
inline constexpr std::size_t near_units = 768;

// memcpy without the cost of a call for a few bytes.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const auto two = [&]<typename Word>(Word first) {
    Word last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + bytes - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + bytes - sizeof last, &last, sizeof last);
  };
  if (bytes > 16) {
    std::memcpy(to, from, bytes);
  } else if (bytes >= 8) {
    two(std::uint64_t{});
  } else if (bytes >= 4) {
    two(std::uint32_t{});
  } else {
    for (std::size_t i = 0; i < bytes; ++i) to[i] = from[i];
  }
}

struct alignas(unit_bytes) LaneUnit {
  std::array<std::uint32_t, unit_bytes / sizeof(std::uint32_t)> words;
};

struct LaneMemory {
  std::array<SharedCopy, most_shared_copies> copies;
  alignas(cache_line) std::atomic<std::uint64_t> taken;  // units that the reader has finished with
  std::atomic<std::uint64_t> taken_slots;
  alignas(cache_line) std::atomic<std::uint32_t> halted;  // 1: the writer no longer touches other ranks' memory
  alignas(cache_line) std::array<LaneUnit, lane_units> units;
  alignas(slot_bytes) std::array<std::array<std::byte, slot_bytes>, lane_slots> slots;
};

// The next message in the lane.
struct LaneMessage {
  std::uint64_t tag = 0;
  const std::byte* data = nullptr;  // nullptr: there is none
  std::size_t bytes = 0;
  bool is_offer = false;
  explicit operator bool() const noexcept { return data != nullptr; }
};

// The first word of a message, written last.
struct LaneWord {
  enum State : std::uint32_t { nothing, tagged, same_tag, rest_unused, offer, in_slots };
  static constexpr std::uint32_t of(State state, std::size_t bytes) {
    return static_cast<std::uint32_t>(bytes) << 3 | state;
  }
  static constexpr State state(std::uint32_t word) { return static_cast<State>(word & 7u); }
  static constexpr std::size_t bytes(std::uint32_t word) { return word >> 3; }

  // Offsets of tag and data from the word; of a message in slots, what is their number, counted from the first.
  static constexpr std::size_t slot_at = 4, tag_at = 8, data_after_tag = 16, data_after_word = 4;
  static constexpr std::size_t longest_same_tag = 128;
  // A message's size is a multiple of its step, so that consecutive messages are aligned alike: one with a tag like the
  // first one, longer ones in cache lines of their own.
  static constexpr std::size_t wide_step = 32, least_of_whole_lines = 48;
  static constexpr std::size_t units(State state, std::size_t bytes) {
    if (state == in_slots) return units_of_line;
    const bool tagged_too = state != same_tag;
    const std::size_t step = tagged_too ? wide_step : bytes < least_of_whole_lines ? unit_bytes : cache_line;
    const std::size_t size = (tagged_too ? data_after_tag : data_after_word) + bytes;
    return (size + step - 1) / step * (step / unit_bytes);
  }
  static constexpr std::size_t slots(std::size_t bytes) { return (bytes + slot_bytes - 1) / slot_bytes; }
};
static_assert(std::atomic_ref<std::uint32_t>::is_always_lock_free);

// The writer's side of a ring of `size` places that a reader takes in order. A message has places in a row. `near`: how
// many are used while the reader keeps up, `spare`: how many stay free.
template <std::size_t size, std::size_t near, std::size_t spare>
class LaneRing {
 public:
  std::uint64_t written() const noexcept { return written_; }
  std::size_t at(std::size_t ahead = 0) const noexcept { return (written_ + ahead) % size; }
  // How many places to skip before the next `count`; nothing: no room until the reader has read more.
  std::optional<std::size_t> skip_for(std::size_t count, const std::atomic<std::uint64_t>& taken) noexcept {
    const std::size_t to_end = size - at();
    const std::size_t skipped = count > to_end || may_turn_back(count, taken) ? to_end : 0;
    if (has_room(skipped + count)) return skipped;
    taken_ = taken.load(std::memory_order_acquire);
    return has_room(skipped + count) ? std::optional(skipped) : std::nullopt;
  }
  void write(std::size_t places) noexcept { written_ += places; }
  // True: the reader has moved.
  bool see(std::uint64_t taken) noexcept { return std::exchange(taken_, taken) != taken; }

 private:
  // Asked once a round: while the reader keeps up, the first places suffice. Skipped ones count as written.
  bool may_turn_back(std::size_t count, const std::atomic<std::uint64_t>& taken) noexcept {
    const bool is_far = at() >= std::max(near, count + spare);
    if (std::exchange(was_far_, is_far) || !is_far) return false;
    taken_ = taken.load(std::memory_order_acquire);
    was_far_ = taken_ != written_;
    return !was_far_;
  }
  bool has_room(std::size_t places) const noexcept { return written_ + places - taken_ <= size - spare; }

  std::uint64_t written_ = 0, taken_ = 0;
  bool was_far_ = false;
};

class LaneWriter {
 public:
  explicit LaneWriter(LaneMemory* memory = nullptr) : memory_(memory) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  // False: no room until the reader has read more.
  bool write(std::uint64_t tag, const std::byte* data, std::size_t bytes) noexcept {
    if (bytes > longest_in_units) return write_in_slots(tag, data, bytes);
    const bool known = tag == tag_ && bytes <= LaneWord::longest_same_tag;
    return write(known ? LaneWord::same_tag : LaneWord::tagged, tag, bytes, [&](std::byte* begin) {
      copy_short(begin + (known ? LaneWord::data_after_word : LaneWord::data_after_tag), data, bytes);
    });
  }
  // Estimates whether a write of one core soon reaches the other, from samples of how long it takes to see the reader's
  // progress; samples are taken often while they disagree.
  bool reader_is_near() noexcept {
    const bool agree = last_looks_ == 0 || last_looks_ == all_long;
    if (!agree || ++questions_ % questions_a_look == 0) look();
    return static_cast<unsigned>(std::popcount(last_looks_)) <= most_long_looks;
  }
  bool write_offer(std::uint64_t tag, const CopyOffer& offer) noexcept {
    return write(LaneWord::offer, tag, sizeof offer,
                 [&](std::byte* begin) { std::memcpy(begin + LaneWord::data_after_tag, &offer, sizeof offer); });
  }

 private:
  static constexpr std::size_t units_ahead = 32;
  // Between cores that share a cache a poll takes 20 to 50 ns, between others 120 ns or more; but a poll may find a
  // line that has already arrived.
  static constexpr Seconds near_look = 90e-9;
  static constexpr unsigned questions_a_look = 4, all_long = 7, most_long_looks = 1;

  void look() noexcept {
    const Seconds start = now_seconds();
    const std::uint64_t taken = memory_->taken.load(std::memory_order_acquire);
    const bool took_long = now_seconds() - start > near_look;
    if (units_.see(taken)) last_looks_ = (last_looks_ << 1 | (took_long ? 1u : 0u)) & all_long;
  }

  bool write_in_slots(std::uint64_t tag, const std::byte* data, std::size_t bytes) noexcept {
    const std::size_t slots = LaneWord::slots(bytes);
    const auto skipped = slots_.skip_for(slots, memory_->taken_slots);
    if (!skipped) return false;
    const bool written = write(LaneWord::in_slots, tag, bytes, [&](std::byte* begin) {
      slots_.write(*skipped);
      const auto first = static_cast<std::uint32_t>(slots_.written());
      std::memcpy(begin + LaneWord::slot_at, &first, sizeof first);
      std::memcpy(memory_->slots[slots_.at()].data(), data, bytes);
    });
    if (written) slots_.write(slots);
    return written;
  }
  // `copy`: puts the data behind, or elsewhere.
  template <typename Copy>
  bool write(LaneWord::State state, std::uint64_t tag, std::size_t bytes, Copy copy) noexcept {
    const std::size_t units = LaneWord::units(state, bytes);
    const auto skipped = units_.skip_for(units, memory_->taken);
    if (!skipped) return false;
    if (*skipped != 0) publish(LaneWord::of(LaneWord::rest_unused, 0));
    units_.write(*skipped);
    auto* begin = reinterpret_cast<std::byte*>(&memory_->units[units_.at()]);
    if (state != LaneWord::same_tag) std::memcpy(begin + LaneWord::tag_at, &tag, sizeof tag);
    copy(begin);
    publish(LaneWord::of(state, bytes));
    tag_ = tag;
    units_.write(units);
    __builtin_prefetch(&memory_->units[units_.at(units_ahead)], 1);  // this core owns it by then
    return true;
  }
  void publish(std::uint32_t word) noexcept {
    std::atomic_ref(memory_->units[units_.at()].words[0]).store(word, std::memory_order_release);
  }

  LaneMemory* memory_;
  // Spare is the line whose first part the reader may still have to clear.
  LaneRing<lane_units, near_units, units_of_line> units_;
  LaneRing<lane_slots, lane_slots, 0> slots_;  // all in turn: what is written next was read long ago
  std::uint64_t tag_ = 0;                      // of the last message
  unsigned last_looks_ = all_long;             // one bit per poll, the last one lowest; 1: it was slow
  unsigned questions_ = 0;
};

class LaneReader {
 public:
  explicit LaneReader(LaneMemory* memory = nullptr) : memory_(memory) {}
  explicit operator bool() const noexcept { return memory_ != nullptr; }

  // The next message; it stays until pop().
  LaneMessage peek() noexcept {
    LaneUnit& unit = next();
    const std::uint32_t word = std::atomic_ref(unit.words[0]).load(std::memory_order_acquire);
    if (word == 0) return {};
    const auto* begin = reinterpret_cast<const std::byte*>(&unit);
    switch (LaneWord::state(word)) {
      case LaneWord::same_tag: return {tag_, begin + LaneWord::data_after_word, LaneWord::bytes(word), false};
      case LaneWord::rest_unused:
        unit.words[0] = 0;  // the units up to the end are empty
        clear(read_);
        read_ += lane_units - read_ % lane_units;
        cleared_ = read_;
        memory_->taken.store(read_, std::memory_order_release);
        return peek();
      case LaneWord::in_slots:
        std::memcpy(&tag_, begin + LaneWord::tag_at, sizeof tag_);
        return {tag_, memory_->slots[first_slot() % lane_slots].data(), LaneWord::bytes(word), false};
      default:
        std::memcpy(&tag_, begin + LaneWord::tag_at, sizeof tag_);
        return {tag_, begin + LaneWord::data_after_tag, LaneWord::bytes(word),
                LaneWord::state(word) == LaneWord::offer};
    }
  }
  void pop() noexcept {
    const std::uint32_t word = next().words[0];
    if (LaneWord::state(word) == LaneWord::in_slots) {
      read_slots_ = first_slot() + LaneWord::slots(LaneWord::bytes(word));
      memory_->taken_slots.store(read_slots_, std::memory_order_release);
    }
    read_ += LaneWord::units(LaneWord::state(word), LaneWord::bytes(word));
    clear(read_ - read_ % units_of_line);
    memory_->taken.store(read_, std::memory_order_release);
  }

 private:
  // Clears one contiguous piece, at most up to the end of the ring.
  void clear(std::uint64_t end) noexcept {
    if (end <= cleared_) return;
    LaneUnit* begin = &memory_->units[cleared_ % lane_units];
    if (end - cleared_ == units_of_line)
      std::memset(begin, 0, cache_line);
    else
      std::memset(begin, 0, (end - cleared_) * unit_bytes);
    cleared_ = end;
  }

  LaneUnit& next() noexcept { return memory_->units[read_ % lane_units]; }
  // Of the next message, from the lower half of its number.
  std::uint64_t first_slot() noexcept {
    std::uint32_t first = 0;
    std::memcpy(&first, reinterpret_cast<const std::byte*>(&next()) + LaneWord::slot_at, sizeof first);
    return read_slots_ + (first - static_cast<std::uint32_t>(read_slots_));
  }

  LaneMemory* memory_;
  std::uint64_t read_ = 0, cleared_ = 0, tag_ = 0, read_slots_ = 0;
};

}  // namespace waywiser
