#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

#include "waywiser/comm/session/call.hpp"

namespace waywiser {

// The process has ended, with all its threads: it holds nothing any more. For processes that this one can see.
bool process_has_ended(std::uint64_t process) noexcept;

// Of a stream or an event: its work is done, or will never be.
template <typename Work>
bool ended(Work& work) noexcept {
  try {
    return work.done();
  } catch (const std::exception&) {
    return true;
  }
}

// What others, or a GPU of this rank, may still read or write of the memory of operations that were given up. Nobody
// may have that memory back before none is left.
class HeldMemory {
 public:
  struct Hold {
    std::uint32_t peer = 0;
    bool by_peer = true;  // which holds nothing once it has ended; else by this rank's own devices
    std::function<bool()> is_over;
    Call call;
  };

  // Of the holds that are added from now on.
  void begin(const Call& call) noexcept { call_ = call; }
  // `is_over`: asked again and again until it is true.
  void add(std::uint32_t peer, std::function<bool()> is_over) {
    holds_.push_back({peer, true, std::move(is_over), call_});
  }
  void add_own(std::uint32_t peer, std::function<bool()> is_over) {
    holds_.push_back({peer, false, std::move(is_over), call_});
  }

  // Forgets what is over, and what those peers have held of whom `holds_nothing(peer)`. One that is left, or nullptr.
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
