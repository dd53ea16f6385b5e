#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// The key of the schedule of one rank within one group.
struct ScheduleKey {
  std::uint8_t operation = 0, element_bytes = 0;
  int root = -1;
  std::uint64_t count = 0;

  bool operator==(const ScheduleKey&) const = default;
};

// Caches the schedules of the last few calls: most programs repeat the same ones.
class ScheduleCache {
 public:
  std::shared_ptr<const Schedule> find(const ScheduleKey& key) const {
    for (const Entry& entry : entries_)
      if (entry.schedule && entry.key == key) return entry.schedule;
    return nullptr;
  }
  std::shared_ptr<const Schedule> keep(const ScheduleKey& key, Schedule schedule) {
    Entry& entry = entries_[next_++ % entries_.size()];
    entry = {key, std::make_shared<const Schedule>(std::move(schedule))};
    return entry.schedule;
  }

 private:
  struct Entry {
    ScheduleKey key;
    std::shared_ptr<const Schedule> schedule;
  };
  std::array<Entry, 16> entries_;
  std::size_t next_ = 0;
};

}  // namespace waywiser
