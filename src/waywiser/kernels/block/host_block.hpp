#pragma once

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <type_traits>

#include "waywiser/device/trap.hpp"
#include "waywiser/kernels/block/half.hpp"
#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/block/tag.hpp"

namespace waywiser::block {

// A block of threads on a virtual GPU, the twin of CudaBlock: one host thread runs all parts in turn.
class HostBlock {
 public:
  HostBlock(unsigned block, unsigned blocks, unsigned threads) : block_(block), blocks_(blocks), threads_(threads) {}

  static constexpr bool may_leave = true;
  static constexpr unsigned looks = 1;  // polls between two checks of the clock: each poll yields the processor

  unsigned block() const { return block_; }
  unsigned blocks() const { return blocks_; }
  unsigned threads() const { return threads_; }
  template <typename Function>
  void each_thread(Function f) const {
    for (unsigned thread = 0; thread < threads_; ++thread) f(thread);
  }
  void sync() const {}
  bool leads(unsigned) const { return false; }
  void sync_before_waits() const {}
  void join_warp() const {}
  void join_whole_warp() const {}

  LlPacket load_packet(const LlPacket* from) const {
    const std::uint64_t low = half(from, 0).load(std::memory_order_acquire);
    const std::uint64_t high = half(from, 1).load(std::memory_order_relaxed);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
  }
  void store_packet(LlPacket* to, const Word8& word, std::uint64_t tag) const {
    for (const unsigned i : {1u, 0u}) half(to, i).store(half_of(word, tag, i), std::memory_order_release);
  }
  // One lane after another: the number of a line comes last.
  Ll128Word line_word(const Vector16& word, unsigned lane, std::uint64_t number) const {
    std::uint64_t halves[2];
    std::memcpy(halves, &word, sizeof halves);
    return {{halves[0], ends_line(lane) ? number : halves[1]}, halves[1]};
  }
  void store_line(Ll128Slot* slot, unsigned lane, const Ll128Word& word, bool active) const {
    if (!active) return;
    Ll128Slot* pair = slot - lane;
    if (lane != 15) as_atomic(&slot->low).store(word.slot.low, std::memory_order_relaxed);
    if (lane == 7) as_atomic(&pair[15].low).store(word.other, std::memory_order_relaxed);
    as_atomic(&slot->high).store(word.slot.high, std::memory_order_release);
  }
  Ll128Look look_at_line(const Ll128Slot* slot, unsigned lane, std::uint64_t number) const {
    const Ll128Slot* pair = slot - lane;
    const auto come = [&](unsigned end) { return acquire(&pair[end].high) == number; };
    const auto part = [](const std::uint64_t& word) { return as_atomic(&word).load(std::memory_order_relaxed); };
    Ll128Look look;
    look.there = come(lane / 8 * 8 + 7) && (lane != 7 || come(15));
    look.slot = {part(pair[lane].low), part(lane == 7 ? pair[15].low : pair[lane].high)};
    return look;
  }
  bool is_there(const Ll128Look& look, unsigned, std::uint64_t) const { return look.there; }
  Vector16 word_in_line(const Ll128Look& look, unsigned) const {
    Vector16 word;
    std::memcpy(&word, &look.slot, sizeof word);
    return word;
  }
  bool any(bool value) const { return value; }
  bool all(bool value) const { return value; }
  void store_far(Vector16* to, const Vector16& words) const { std::memcpy(to, &words, sizeof words); }
  template <typename Word>
  Word acquire(const Word* flag) const {
    return as_atomic(flag).load(std::memory_order_acquire);
  }
  template <typename Word>
  Word peek(const Word* word) const {
    return acquire(word);
  }
  template <typename Word>
  void post(Word* word, std::type_identity_t<Word> value) const {
    release(word, value);
  }
  template <typename Word>
  void release(Word* flag, Word value) const {
    as_atomic(flag).store(value, std::memory_order_release);
  }
  // Others may see half of it.
  void tell(Announcement* to, const Announcement& announcement) const {
    store(&to->description, announcement.description);
    store(&to->tag, announcement.tag);
  }
  Announcement told(const Announcement* by) const { return {acquire(&by->tag), acquire(&by->description)}; }
  [[noreturn]] static void trap() { throw Trap(); }
  [[noreturn]] static void leave() { throw Trap(true); }
  template <typename Word>
  void store(Word* word, std::type_identity_t<Word> value) const {
    as_atomic(word).store(value, std::memory_order_relaxed);
  }
  void add(std::uint64_t* word, std::uint64_t value) const { std::atomic_ref<std::uint64_t>(*word).fetch_add(value); }
  static std::uint64_t nanoseconds() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }
  static void pause() { std::this_thread::yield(); }
  std::byte*& address(unsigned rank) { return addresses_[rank]; }

  template <typename T>
  static auto widen(T value) {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>)
      return to_float(value);
    else
      return value;
  }
  template <typename T, typename Wide>
  static T narrow(Wide value) {
    if constexpr (std::is_same_v<T, Float16>)
      return to_float16(value);
    else if constexpr (std::is_same_v<T, Bfloat16>)
      return to_bfloat16(value);
    else
      return value;
  }
  template <typename T>
  static T least(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
      if (a == b) return std::signbit(a) ? a : b;
    }
    return b < a ? b : a;
  }
  template <typename T>
  static T greatest(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return std::numeric_limits<T>::quiet_NaN();
      if (a == b) return std::signbit(a) ? b : a;
    }
    return a < b ? b : a;
  }

 protected:
  // Data in the low four bytes, the flag above.
  static std::uint64_t half_of(const Word8& word, std::uint64_t tag, unsigned index) {
    return word.words[index] | std::uint64_t{index == 0 ? static_cast<std::uint32_t>(tag) : mark_of(tag)} << 32;
  }

 private:
  template <typename Word>
  static std::atomic_ref<Word> as_atomic(const Word* word) {
    return std::atomic_ref<Word>(*const_cast<Word*>(word));
  }
  static std::atomic_ref<std::uint64_t> half(const LlPacket* packet, unsigned index) {
    return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(const_cast<LlPacket*>(packet))[index]);
  }

  unsigned block_, blocks_, threads_;
  std::byte* addresses_[max_ranks] = {};
};

// Nothing begins after an operation that has failed where the context is kept; nullptr: it is not.
inline void begin_unless(const std::uint32_t* failed) {
  if (failed != nullptr && *static_cast<const volatile std::uint32_t*>(failed) != 0) HostBlock::leave();
}

}  // namespace waywiser::block
