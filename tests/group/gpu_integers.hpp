#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

constexpr Seconds begun_patience = 20;
using Integers = std::vector<std::int32_t>;

// Integers on the rank's GPU.
class GpuIntegers {
 public:
  GpuIntegers(Group& group, std::size_t count, std::int32_t first)
      : memory_(group.platform()->allocate(gpu_of_rank(group), count * 4 + 4, Allocation::gpu)),
        pinned_(group.platform()->allocate(host(0), count * 4 + 4, Allocation::pinned)),
        stream_(group.platform()->open_stream(gpu_of_rank(group))),
        count_(count) {
    Integers all(count);
    std::iota(all.begin(), all.end(), first);
    set(all);
  }

  Elements elements() const { return {memory_.region().slice(0, count_ * 4), DataType::int32}; }
  void set(const Integers& all) {
    std::memcpy(pinned_.region().data, all.data(), count_ * 4);
    copy(memory_.region(), pinned_.region());
  }
  Integers get() {
    copy(pinned_.region(), memory_.region());
    Integers all(count_);
    std::memcpy(all.data(), pinned_.region().data, count_ * 4);
    return all;
  }

 private:
  void copy(Region to, ConstRegion from) {
    stream_->copy(to.slice(0, count_ * 4), from.slice(0, count_ * 4));
    stream_->synchronize(Deadline::in(begun_patience));
  }

  Memory memory_, pinned_;
  std::unique_ptr<Stream> stream_;
  std::size_t count_;
};

// The sum over all ranks of arrays that begin at their rank.
inline Integers sum_of_ranks(int ranks, std::size_t count, std::int32_t first = 0) {
  Integers all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = ranks * (static_cast<std::int32_t>(i) + first) + ranks * (ranks - 1) / 2;
  return all;
}

}  // namespace waywiser
