#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "waywiser/collective/fused/landing.hpp"

namespace waywiser::fused {

// A block of threads on a virtual GPU: one host thread takes their parts in turn.
class HostBlock {
 public:
  HostBlock(unsigned block, unsigned blocks, unsigned threads) : block_(block), blocks_(blocks), threads_(threads) {}

  static constexpr unsigned looks = 1;  // between two at the clock: each gives the processor away

  unsigned block() const { return block_; }
  unsigned blocks() const { return blocks_; }
  unsigned threads() const { return threads_; }
  template <typename Function>
  void each_thread(Function f) const {
    for (unsigned thread = 0; thread < threads_; ++thread) f(thread);
  }
  void sync() const {}
  bool leads(unsigned) const { return false; }
  void join_warp() const {}

  Packet load_packet(const Packet* from) const {
    const std::uint64_t low = half(from, 0).load(std::memory_order_relaxed);
    const std::uint64_t high = half(from, 1).load(std::memory_order_relaxed);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
  }
  void store_packet(Packet* to, const Word8& word, std::uint32_t number) const {
    for (const unsigned i : {0u, 1u})
      half(to, i).store(word.words[i] | std::uint64_t{number} << 32, std::memory_order_relaxed);
  }
  void store_far(Vector16* to, const Vector16& words) const { std::memcpy(to, &words, sizeof words); }
  template <typename Word>
  Word acquire(const Word* flag) const {
    return as_atomic(flag).load(std::memory_order_acquire);
  }
  std::uint32_t peek(const std::uint32_t* word) const { return acquire(word); }
  void post(std::uint32_t* word, std::uint32_t value) const { release(word, value); }
  template <typename Word>
  void release(Word* flag, Word value) const {
    as_atomic(flag).store(value, std::memory_order_release);
  }
  State load_state(const State* state) const {
    State seen;
    seen.progress = std::atomic_ref<std::uint64_t>(const_cast<State*>(state)->progress).load(std::memory_order_relaxed);
    seen.failed_peer = as_atomic(&state->failed_peer).load(std::memory_order_relaxed);
    return seen;
  }
  void store(std::uint32_t* word, std::uint32_t value) const {
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

 private:
  template <typename Word>
  static std::atomic_ref<Word> as_atomic(const Word* word) {
    return std::atomic_ref<Word>(*const_cast<Word*>(word));
  }
  // Data in the low four bytes, the number above.
  static std::atomic_ref<std::uint64_t> half(const Packet* packet, unsigned index) {
    return std::atomic_ref<std::uint64_t>(reinterpret_cast<std::uint64_t*>(const_cast<Packet*>(packet))[index]);
  }

  unsigned block_, blocks_, threads_;
  std::byte* addresses_[most_ranks] = {};
};

}  // namespace waywiser::fused
