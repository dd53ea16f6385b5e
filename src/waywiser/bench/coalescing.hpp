#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "waywiser/bench/bench_buffer.hpp"
#include "waywiser/measure/statistics.hpp"

namespace waywiser {

class LocalProgram;

// Blocks of equal size, as far apart as they are long, are copied one by one, or gathered at the source and copied at
// once. The gathering counts: by the CPU, or by one kernel.
struct CoalescingTimes {
  Summary apart, gathered;  // seconds for all blocks
  Summary change;           // of the speed by gathering, in percent: 100 * (apart / gathered - 1), of pairs of samples
};

// Between two memories of this process.
class CoalescedCopies {
 public:
  // `largest`: bytes of all blocks. Throws the platform's errors: unavailable if one GPU cannot reach the other.
  CoalescedCopies(Platform& platform, Place source, Place destination, Bytes largest);
  ~CoalescedCopies();

  // Interleaved samples for `seconds`, at least five of each; every one is checked. Throws corrupt, and invalid_input
  // for more bytes than `largest` or no blocks.
  CoalescingTimes measure(Bytes block, int blocks, Seconds seconds);

 private:
  class Race;

  void copy_apart(Bytes block, int blocks);
  void copy_gathered(Bytes block, int blocks, LocalProgram* program);
  template <typename Copy>
  Seconds sample(Bytes block, int blocks, int calls, Copy copy);

  Platform& platform_;
  const Bytes largest_;
  BenchBuffer source_, gathered_, destination_;
  std::unique_ptr<Stream> stream_;
  std::uint64_t seed_ = 1;
};

}  // namespace waywiser
