#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <random>
#include <span>
#include <vector>

#include "waywiser/heap/device/host_heap_block.hpp"

namespace waywiser::one_sided {

// Thrown through a body when the other rank goes on. The body is begun again later, with what it has read so far.
struct Switched : std::exception {};

// A block of one rank whose stores become visible late and in any order, whose loads may give older values, and whose
// non-blocking gets read at any time before quiet(): as far as the memory model of docs/one-sided.md allows. All words
// have 8 bytes. One of the block's orders (fence, quiet, release, acquire), counted from 0, may be left out.
class WeakBlock : public HostHeapBlock {
 public:
  static constexpr int none = -1, torn_lines = -2;  // torn_lines: halves of lines arrive one by one

  WeakBlock(std::mt19937_64& generator, std::span<std::uint64_t> memory, int left_out)
      : generator_(generator), memory_(memory), left_out_(left_out), old_(memory.begin(), memory.end()) {}
  WeakBlock(const WeakBlock&) = delete;
  WeakBlock& operator=(const WeakBlock&) = delete;

  // Runs body() up to its end or a switch. True: it has ended.
  template <typename Body>
  bool run(Body body) {
    next_ = 0;
    fresh_ = true;
    for (auto& line : lines_) line.clear();
    try {
      body();
      return true;
    } catch (const Switched&) {
      return false;
    }
  }

  void give(Scope, std::byte* to, const std::byte* from, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, from + at, 8);
      write(reinterpret_cast<std::uint64_t*>(to + at), value);
    }
  }
  void take_later(Scope, std::byte* to, const std::byte* from, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += 8)
      step([&] {
        later_.push_back(
            {reinterpret_cast<std::uint64_t*>(to + at), reinterpret_cast<const std::uint64_t*>(from + at)});
        return 0;
      });
  }
  using HostHeapBlock::write;  // of other words
  void write(std::uint64_t* to, std::uint64_t value) {
    step([&] {
      late_.push_back({to, value, epoch_, false});
      return 0;
    });
  }
  std::uint64_t read(const std::uint64_t* from) {
    return step([&] { return load(from); });
  }
  std::uint64_t acquire(const std::uint64_t* from) {
    return step([&] {
      if (!is_left_out()) refresh();
      return load(from);
    });
  }
  void release(std::uint64_t* to, std::uint64_t value) { store_behind({to, value, 0, false}); }
  void release_add(std::uint64_t* to, std::uint64_t value) { store_behind({to, value, 0, true}); }
  // A packet's halves become visible, and are seen, one by one.
  void store_packet(block::LlPacket* to, const block::Word8& word, std::uint64_t tag) {
    for (const unsigned i : {0u, 1u}) write(reinterpret_cast<std::uint64_t*>(to) + i, half_of(word, tag, i));
  }
  block::LlPacket load_packet(const block::LlPacket* from) {
    const auto* halves = reinterpret_cast<const std::uint64_t*>(from);
    const std::uint64_t low = read(halves), high = read(halves + 1);
    return {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
            static_cast<std::uint32_t>(high >> 32)};
  }
  // All of a line becomes visible at once, and a look sees all of it as it was at one time.
  void store_line(block::Ll128Slot* slot, unsigned lane, const block::Ll128Word& word, bool active) {
    if (!active) return;
    block::Ll128Slot* pair = slot - lane;
    if (lane != 15) lines_[lane / 8].push_back({&slot->low, word.slot.low, 0, false});
    if (lane == 7) lines_[1].push_back({&pair[15].low, word.other, 0, false});
    lines_[lane / 8].push_back({&slot->high, word.slot.high, 0, false});
    if (!block::ends_line(lane)) return;
    step([&] {
      ++group_;
      for (Late& each : lines_[lane / 8]) {
        each.epoch = epoch_;
        each.group = left_out_ == torn_lines && each.to >= &pair[lane / 8 * 8 + 4].low ? -group_ : group_;
        late_.push_back(each);
      }
      return 0;
    });
    lines_[lane / 8].clear();
  }
  block::Ll128Look look_at_line(const block::Ll128Slot* slot, unsigned lane, std::uint64_t number) {
    const block::Ll128Slot* pair = slot - lane;
    const auto look = [&](unsigned end) {
      step([&] {
        const auto* first = &pair[end - 7].low;
        if (generator_() % 2 == 0) std::copy(first, first + 16, old_.begin() + (first - memory_.data()));
        return 0;
      });
      return seen_of(&pair[end].high) == number;
    };
    block::Ll128Look found;
    found.there = look(lane / 8 * 8 + 7);
    if (lane == 7) found.there = look(15) && found.there;
    found.slot = {seen_of(&pair[lane].low), seen_of(lane == 7 ? &pair[15].low : &pair[lane].high)};
    return found;
  }
  void fence() {
    step([&] {
      if (is_left_out()) return 0;
      ++epoch_;
      refresh();
      return 0;
    });
  }
  void quiet() {
    step([&] {
      if (is_left_out()) return 0;
      while (has_late()) let_one_go();
      refresh();
      return 0;
    });
  }
  static std::uint64_t nanoseconds() { return 0; }  // no deadline comes
  void pause() {  // NOLINT(bugprone-derived-method-shadowing-base-method): bodies call it by the block's type
    if (next_ == answers_.size()) {
      answers_.push_back(0);
      throw Switched();
    }
    ++next_;
  }

  bool has_late() const { return !late_.empty() || !later_.empty(); }
  // A store of the first epoch becomes visible, or a get reads. Stores to one word keep their order.
  void let_one_go() {
    const std::size_t index = generator_() % (late_.size() + later_.size());
    if (index >= late_.size()) {
      const auto chosen = later_.begin() + static_cast<std::ptrdiff_t>(index - late_.size());
      *chosen->to = load(chosen->from);
      later_.erase(chosen);
      return;
    }
    const unsigned first = std::ranges::min_element(late_, {}, &Late::epoch)->epoch;
    auto chosen = late_.begin() + static_cast<std::ptrdiff_t>(index);
    if (chosen->epoch != first) chosen = std::ranges::find(late_, first, &Late::epoch);
    chosen = std::ranges::find(late_, chosen->to, &Late::to);
    const long group = chosen->group;
    if (group == 0) {
      *chosen->to = chosen->adds ? *chosen->to + chosen->value : chosen->value;
      late_.erase(chosen);
      return;
    }
    for (const Late& each : late_)
      if (each.group == group) *each.to = each.value;
    std::erase_if(late_, [group](const Late& each) { return each.group == group; });
  }
  int orders() const { return orders_; }

 private:
  struct Late {
    std::uint64_t* to;
    std::uint64_t value;
    unsigned epoch;
    bool adds;
    long group = 0;  // other than 0: those of one group become visible together
  };
  struct Later {
    std::uint64_t* to;
    const std::uint64_t* from;
  };

  // The answer of the body's next step: the one that it got before, or a new one.
  template <typename Act>
  std::uint64_t step(Act act) {
    if (next_ < answers_.size()) return answers_[next_++];
    if (!fresh_ && generator_() % 3 == 0) throw Switched();
    fresh_ = false;
    while (generator_() % 4 == 0 && has_late()) let_one_go();
    answers_.push_back(act());
    return answers_[next_++];
  }
  bool is_left_out() { return orders_++ == left_out_; }
  void store_behind(Late store) {
    step([&] {
      if (!is_left_out()) ++epoch_;
      store.epoch = epoch_;
      late_.push_back(store);
      return 0;
    });
  }
  // What this rank has stored last, else what is in memory or was there at any time since the last order.
  std::uint64_t load(const std::uint64_t* from) {
    const auto mine = std::ranges::find(late_.rbegin(), late_.rend(), from, &Late::to);
    if (mine != late_.rend() && !mine->adds) return mine->value;
    std::uint64_t& older = old_[static_cast<std::size_t>(from - memory_.data())];
    if (generator_() % 2 == 0) older = *from;
    return older;
  }
  std::uint64_t seen_of(const std::uint64_t* word) {
    return step([&] { return old_[static_cast<std::size_t>(word - memory_.data())]; });
  }
  void refresh() { std::ranges::copy(memory_, old_.begin()); }

  std::mt19937_64& generator_;
  const std::span<std::uint64_t> memory_;  // of all ranks
  const int left_out_;
  std::vector<std::uint64_t> old_;
  std::vector<Late> late_;
  std::vector<Later> later_;
  std::vector<Late> lines_[2];  // what lanes have stored of the two lines of a pair so far
  long group_ = 0;
  unsigned epoch_ = 0;
  int orders_ = 0;
  std::vector<std::uint64_t> answers_;
  std::size_t next_ = 0;  // of the answers
  bool fresh_ = true;     // no step since it goes on
};

}  // namespace waywiser::one_sided
