#pragma once

#include <array>
#include <cstring>
#include <map>
#include <vector>

#include "tests/explorer/explorer.hpp"
#include "waywiser/kernels/block/host_block.hpp"
#include "waywiser/kernels/block/notice.hpp"

namespace waywiser::explorer {

// A block of threads that runs as one thread of a course. Each load of a word that others store is a step. Each store
// to others is visible at once or, at the cost of a deviation, is delayed until a release, a pause or the end. Delayed
// stores become visible in any order; the order of issue costs nothing.
class ExploredBlock : public block::HostBlock {
 public:
  // `notice`: once it says stop, a wait polls it as often as it must.
  ExploredBlock(Course& course, unsigned block, unsigned blocks, unsigned threads,
                const block::Notice* notice = nullptr)
      : HostBlock(block, blocks, threads), course_(course), notice_(notice) {}

  bool leads(unsigned thread) const { return thread % 32 == 0; }
  block::LlPacket load_packet(const block::LlPacket* from) {
    const auto* halves = reinterpret_cast<const std::uint64_t*>(from);
    const std::uint64_t low = acquire(halves), high = acquire(halves + 1);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
  }
  void store_packet(block::LlPacket* to, const block::Word8& word, std::uint64_t tag) {
    auto* halves = reinterpret_cast<std::uint64_t*>(to);
    for (const unsigned i : {1u, 0u}) put({{halves + i, half_of(word, tag, i)}});
  }
  // Stores a line as a whole, once its last lane has been given.
  void store_line(block::Ll128Slot* slot, unsigned lane, const block::Ll128Word& word, bool active) {
    block::Ll128Slot* pair = slot - lane;
    auto& slots = pairs_[pair];
    HostBlock::store_line(slots.data() + lane, lane, word, active);
    if (!active || !block::ends_line(lane)) return;
    Held line;
    for (unsigned i = lane / 8 * 8; i < lane / 8 * 8 + 8; ++i) {
      line.push_back({&pair[i].low, slots[i].low});
      line.push_back({&pair[i].high, slots[i].high});
    }
    put(line);
  }
  block::Ll128Look look_at_line(const block::Ll128Slot* slot, unsigned lane, std::uint64_t number) {
    if (lane % 8 == 0) course_.step();  // a line is looked at as a whole
    return HostBlock::look_at_line(slot, lane, number);
  }
  void store_far(Vector16* to, const Vector16& words) {
    std::uint64_t values[2];
    std::memcpy(values, &words, sizeof values);
    auto* halves = reinterpret_cast<std::uint64_t*>(to);
    for (const unsigned i : {0u, 1u}) put({{halves + i, values[i]}});
  }
  template <typename Word>
  Word acquire(const Word* flag) {
    course_.step();
    return HostBlock::acquire(flag);
  }
  template <typename Word>
  Word peek(const Word* word) {
    return acquire(word);
  }
  template <typename Word>
  void release(Word* flag, Word value) {
    end();
    course_.step();
    HostBlock::release(flag, value);
    course_.changed();
  }
  void post(std::uint32_t* word, std::uint32_t value) { release(word, value); }
  void tell(block::Announcement* to, const block::Announcement& announcement) {
    HostBlock::tell(to, announcement);
    course_.changed();
  }
  void add(std::uint64_t* word, std::uint64_t value) {
    course_.step();
    HostBlock::add(word, value);
    course_.changed();
  }
  static std::uint64_t nanoseconds() { return 1; }  // no deadline comes
  void pause() {
    if (!held_.empty() && course_.choose(2, true) == 0) return end();
    if (notice_ == nullptr || notice_->stop == 0) course_.idle();
  }
  // All delayed stores become visible.
  void end() {
    while (!held_.empty()) {
      const auto next = held_.begin() + course_.choose(static_cast<unsigned>(held_.size()), true);
      const Held stores = *next;
      held_.erase(next);
      let_go(stores);
    }
  }

 private:
  struct Store {
    std::uint64_t* to;
    std::uint64_t value;
  };
  using Held = std::vector<Store>;  // stores that become visible together

  void put(const Held& stores) {
    if (course_.choose(2, true) == 0) return let_go(stores);
    held_.push_back(stores);
  }
  void let_go(const Held& stores) {
    course_.step();
    for (const Store& store : stores) std::atomic_ref<std::uint64_t>(*store.to).store(store.value);
    course_.changed();
  }

  Course& course_;
  const block::Notice* notice_;
  std::vector<Held> held_;
  std::map<block::Ll128Slot*, std::array<block::Ll128Slot, block::lanes_of_pair>> pairs_;
};

}  // namespace waywiser::explorer
