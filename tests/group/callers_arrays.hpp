#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/prepared.hpp"

namespace waywiser {

constexpr Seconds prepared_patience = 20;

// The caller's arrays of one rank, in host memory or on its GPU, next to each other.
class CallersArrays {
 public:
  CallersArrays(Group& group, const Schedule& schedule, bool on_gpu) : schedule_(schedule), on_gpu_(on_gpu) {
    const Place place = on_gpu ? gpu_of_rank(group) : host(0);
    Bytes bytes = 16;
    for (const ScheduleArray& array : schedule.arrays) bytes += array.count * bytes_of(array.type) + 16;
    if (on_gpu) {
      memory_ = group.platform()->allocate(place, bytes, Allocation::gpu);
      pinned_ = group.platform()->allocate(host(0), bytes, Allocation::pinned);
      stream_ = group.platform()->open_stream(place);
    } else {
      plain_.resize(bytes);
    }
    const Region all = on_gpu ? memory_.region() : Region{plain_.data(), bytes, place};
    Bytes at = 0;
    for (const ScheduleArray& array : schedule.arrays) {
      const Bytes size = array.count * bytes_of(array.type);
      at = (at + 7) / 8 * 8;  // not always where whole vectors begin
      if (array.use <= ArrayUse::taken) elements_.emplace_back(all.slice(at, size), array.type);
      at += size;
    }
  }

  const std::vector<Elements>& elements() const { return elements_; }
  void fill(const std::vector<std::vector<std::byte>>& arrays) { each(arrays, true); }
  std::vector<std::vector<std::byte>> read() {
    std::vector<std::vector<std::byte>> arrays(schedule_.arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i)
      arrays[i].resize(schedule_.arrays[i].count * bytes_of(schedule_.arrays[i].type));
    each(arrays, false);
    return arrays;
  }
  Stream& stream() { return *stream_; }

 private:
  template <typename Arrays>
  void each(Arrays& arrays, bool write) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (schedule_.arrays[i].use > ArrayUse::taken) continue;
      const Region region = elements_[next++].region;
      if (region.bytes == 0) continue;
      std::byte* plain = on_gpu_ ? pinned_.region().data : region.data;
      const Region pinned = on_gpu_ ? pinned_.region().slice(0, region.bytes) : Region{};
      if (write) std::memcpy(plain, arrays[i].data(), region.bytes);
      if (on_gpu_) write ? stream_->copy(region, pinned) : stream_->copy(pinned, region);
      if (on_gpu_) stream_->synchronize(Deadline::in(prepared_patience));
      if constexpr (!std::is_const_v<Arrays>)
        if (!write) std::memcpy(arrays[i].data(), plain, region.bytes);
    }
  }

  const Schedule& schedule_;
  const bool on_gpu_;
  std::vector<std::byte> plain_;
  Memory memory_, pinned_;
  std::unique_ptr<Stream> stream_;
  std::vector<Elements> elements_;
};

inline void expect_error(const std::string& found, const std::string& wanted) {
  require_that(found.find(wanted) != std::string::npos, "'" + found + "' instead of '" + wanted + "'");
}

}  // namespace waywiser
