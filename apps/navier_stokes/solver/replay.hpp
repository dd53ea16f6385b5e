#pragma once

#include <array>

#include "apps/navier_stokes/solver/exchanges.hpp"

namespace flow {

// Loops and exchanges that run again and again, with the same arrays: unless exchanges are timed, a GPU replays a graph
// that an earlier call has recorded, if all exchanges are by kernels.
class Replay {
 public:
  explicit Replay(Exchanges& exchanges) : exchanges_(exchanges), recording_(exchanges.processor()) {}

  // f() reads and writes `arrays`, and others that stay the same.
  template <typename Function>
  void run(std::array<const double*, 2> arrays, Function f) {
    if (exchanges_.timed() || !exchanges_.by_kernels()) return f();
    const Recorded wanted{arrays, exchanges_.choices()};
    if (recorded_ != wanted) recording_.forget();
    recorded_ = wanted;
    recording_.run(f);
  }

 private:
  struct Recorded {
    std::array<const double*, 2> arrays{};
    int choices = 0;
    bool operator==(const Recorded&) const = default;
  };

  Exchanges& exchanges_;
  apps::Recording recording_;
  Recorded recorded_;
};

}  // namespace flow
