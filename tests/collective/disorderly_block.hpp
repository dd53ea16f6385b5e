#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::fused {

// A block whose stores to others are delayed and become visible in any order that the memory model allows: a release
// makes all earlier stores visible first, and at the end all are visible. The block pauses now and then.
class DisorderlyBlock : public block::HostBlock {
 public:
  DisorderlyBlock(unsigned block, unsigned blocks, unsigned threads, std::uint64_t seed)
      : HostBlock(block, blocks, threads), generator_(seed) {}
  DisorderlyBlock(const DisorderlyBlock&) = default;
  DisorderlyBlock& operator=(const DisorderlyBlock&) = delete;
  ~DisorderlyBlock() { let_all_go(); }

  bool leads(unsigned thread) const { return thread % 32 == 0; }
  void store_packet(block::LlPacket* to, const block::Word8& word, std::uint64_t tag) {
    auto* halves = reinterpret_cast<std::uint64_t*>(to);
    for (const unsigned i : {0u, 1u}) held_.push_back({halves + i, half_of(word, tag, i)});
    let_some_go();
  }
  // Stores a line as a whole, once its last lane has been given.
  void store_line(block::Ll128Slot* slot, unsigned lane, const block::Ll128Word& word, bool active) {
    block::Ll128Slot* pair = slot - lane;
    auto& slots = pairs_[pair];
    HostBlock::store_line(slots.data() + lane, lane, word, active);
    if (!active || !block::ends_line(lane)) return;
    HeldLine held{pair + lane / 8 * 8, {}};
    std::copy_n(slots.begin() + lane / 8 * 8, held.slots.size(), held.slots.begin());
    lines_.push_back(held);
    let_some_go();
  }
  block::Ll128Look look_at_line(const block::Ll128Slot* slot, unsigned lane, std::uint64_t number) {
    let_some_go();
    return HostBlock::look_at_line(slot, lane, number);
  }
  void store_far(Vector16* to, const Vector16& words) {
    std::uint64_t values[2];
    std::memcpy(values, &words, sizeof values);
    for (const unsigned i : {0u, 1u}) held_.push_back({reinterpret_cast<std::uint64_t*>(to) + i, values[i]});
    let_some_go();
  }
  block::LlPacket load_packet(const block::LlPacket* from) {
    let_some_go();
    return HostBlock::load_packet(from);
  }
  template <typename Word>
  Word acquire(const Word* flag) {
    let_some_go();
    return HostBlock::acquire(flag);
  }
  template <typename Word>
  void release(Word* flag, Word value) {
    let_all_go();
    HostBlock::release(flag, value);
  }

  void pause() {
    for (std::size_t left = held_.size() / 2; held_.size() > left;) let_go(generator_() % held_.size());
    for (std::size_t left = lines_.size() / 2; lines_.size() > left;) let_line_go(generator_() % lines_.size());
    HostBlock::pause();
  }

 private:
  struct Held {
    std::uint64_t* to;
    std::uint64_t value;
  };

  struct HeldLine {
    block::Ll128Slot* to;
    std::array<block::Ll128Slot, 8> slots;
  };

  void let_line_go(std::size_t index) {
    const HeldLine held = lines_[index];
    lines_[index] = lines_.back();
    lines_.pop_back();
    const auto put = [](std::uint64_t& to, std::uint64_t value, std::memory_order order) {
      std::atomic_ref<std::uint64_t>(to).store(value, order);
    };
    for (std::size_t i = 0; i < held.slots.size(); ++i) {
      put(held.to[i].low, held.slots[i].low, std::memory_order_relaxed);
      put(held.to[i].high, held.slots[i].high, std::memory_order_release);
    }
  }
  void let_go(std::size_t index) {
    const Held held = held_[index];
    held_[index] = held_.back();
    held_.pop_back();
    std::atomic_ref<std::uint64_t>(*held.to).store(held.value, std::memory_order_relaxed);
  }
  void let_some_go() {
    if (generator_() % 512 == 0) std::this_thread::yield();
    for (int i = 0; i < 2 && !held_.empty() && generator_() % 2 == 0; ++i) let_go(generator_() % held_.size());
    if (!lines_.empty() && generator_() % 2 == 0) let_line_go(generator_() % lines_.size());
  }
  void let_all_go() {
    while (!held_.empty()) let_go(generator_() % held_.size());
    while (!lines_.empty()) let_line_go(generator_() % lines_.size());
  }

  std::mt19937_64 generator_;
  std::vector<Held> held_;
  std::map<block::Ll128Slot*, std::array<block::Ll128Slot, block::lanes_of_pair>> pairs_;
  std::vector<HeldLine> lines_;
};

}  // namespace waywiser::fused
