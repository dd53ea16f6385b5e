#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/session/lane_execution.hpp"

namespace waywiser {

// What a program asks of one rank, apart from the addresses: calls that are alike here are right or wrong alike.
struct CallShape {
  Collective operation = Collective::barrier;
  DataType input_type = DataType::uint8, output_type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  int root = -1;
  Bytes input = 0, output = 0;

  bool operator==(const CallShape&) const = default;
};

// Blocking collectives of host memory that have been checked and run before: what a program repeats, lanes carry if
// they can, and its time goes into its messages.
class KnownCalls {
 public:
  struct Known {
    CallShape shape;
    enum class State : std::uint8_t { unused, seen, made } state = State::unused;
    Call as;                                       // but for its number
    std::shared_ptr<const LaneSchedule> schedule;  // made; nullptr: lanes cannot
  };
  // nullptr: it is not known. Valid until the next add().
  Known* find(const CallShape& shape) noexcept {
    const auto is_it = [&](const Known& call) { return call.shape == shape && call.state != Known::State::unused; };
    if (is_it(calls_[last_])) [[likely]]
      return &calls_[last_];
    const auto found = std::ranges::find_if(calls_, is_it);
    if (found == calls_.end()) return nullptr;
    last_ = static_cast<std::size_t>(found - calls_.begin());
    return &*found;
  }
  // Forgets the oldest.
  void add(const CallShape& shape) {
    last_ = next_++ % calls_.size();
    calls_[last_] = {shape, Known::State::seen, {}, nullptr};
  }

 private:
  std::array<Known, 16> calls_;
  std::size_t next_ = 0, last_ = 0;
};

}  // namespace waywiser
