#pragma once

#include <random>
#include <vector>

#include "waywiser/collective/fused/host_block.hpp"

namespace waywiser::fused {

// A block whose stores to others stay away for a while and arrive in any order, as far as the rules of memory allow:
// a release lets everything before it go first, and at the end all has gone. It falls asleep now and then.
class DisorderlyBlock : public HostBlock {
 public:
  DisorderlyBlock(unsigned block, unsigned blocks, unsigned threads, std::uint64_t seed)
      : HostBlock(block, blocks, threads), generator_(seed) {}
  DisorderlyBlock(const DisorderlyBlock&) = default;
  DisorderlyBlock& operator=(const DisorderlyBlock&) = delete;
  ~DisorderlyBlock() { let_all_go(); }

  void store_packet(Packet* to, const Word8& word, std::uint32_t number) {
    auto* halves = reinterpret_cast<std::uint64_t*>(to);
    for (const unsigned i : {0u, 1u}) held_.push_back({halves + i, word.words[i] | std::uint64_t{number} << 32});
    let_some_go();
  }
  void store_far(Vector16* to, const Vector16& words) {
    std::uint64_t values[2];
    std::memcpy(values, &words, sizeof values);
    for (const unsigned i : {0u, 1u}) held_.push_back({reinterpret_cast<std::uint64_t*>(to) + i, values[i]});
    let_some_go();
  }
  Packet load_packet(const Packet* from) {
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
    HostBlock::pause();
  }

 private:
  struct Held {
    std::uint64_t* to;
    std::uint64_t value;
  };

  void let_go(std::size_t index) {
    const Held held = held_[index];
    held_[index] = held_.back();
    held_.pop_back();
    std::atomic_ref<std::uint64_t>(*held.to).store(held.value, std::memory_order_relaxed);
  }
  void let_some_go() {
    if (generator_() % 512 == 0) std::this_thread::yield();
    for (int i = 0; i < 2 && !held_.empty() && generator_() % 2 == 0; ++i) let_go(generator_() % held_.size());
  }
  void let_all_go() {
    while (!held_.empty()) let_go(generator_() % held_.size());
  }

  std::mt19937_64 generator_;
  std::vector<Held> held_;
};

}  // namespace waywiser::fused
