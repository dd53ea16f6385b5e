#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "waywiser/comm/message/call.hpp"

namespace waywiser {

// Whether the process has ended with all its threads, and so holds nothing any more. For processes that this one can
// see.
bool process_has_ended(std::uint64_t process) noexcept;

// For a stream or an event: its work is done, or will never be done.
template <typename Work>
bool ended(Work& work) noexcept {
  try {
    return work.done();
  } catch (const std::exception&) {
    return true;
  }
}

// Memory of abandoned operations that other ranks, or a GPU of this rank, may still read or write. Nobody may reuse it
// before all holds are gone.
class HeldMemory {
 public:
  struct Hold {
    std::uint32_t peer = 0;
    bool by_peer = true;  // the peer holds it until it ends; false: this rank's own devices do
    std::function<bool()> is_over;
    Call call;
  };

  // The call of all later holds.
  void begin(const Call& call) noexcept { call_ = call; }
  // `is_over` is polled until it is true.
  void add(std::uint32_t peer, std::function<bool()> is_over) {
    holds_.push_back({peer, true, std::move(is_over), call_});
  }
  void add_own(std::uint32_t peer, std::function<bool()> is_over) {
    holds_.push_back({peer, false, std::move(is_over), call_});
  }

  // Drops holds that are over, and those of peers for which `holds_nothing(peer)`. Returns a remaining one, or nullptr.
  template <typename HoldsNothing>
  const Hold* holder(HoldsNothing holds_nothing) {
    std::erase_if(holds_,
                  [&](const Hold& hold) { return hold.is_over() || (hold.by_peer && holds_nothing(hold.peer)); });
    return holds_.empty() ? nullptr : &holds_.front();
  }
  bool has_own() const noexcept {
    return std::ranges::any_of(holds_, [](const Hold& hold) { return !hold.by_peer; });
  }

 private:
  std::vector<Hold> holds_;
  Call call_;
};

}  // namespace waywiser
