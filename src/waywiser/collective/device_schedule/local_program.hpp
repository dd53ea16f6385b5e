#pragma once

#include <span>

#include "waywiser/collective/device_schedule/device_execution.hpp"

namespace waywiser {

// A schedule of one rank alone on its GPU, which packs, unpacks and copies: each start is one kernel.
class LocalProgram {
 public:
  // `arrays`: as for DeviceExecution. Complete on return. Throws the platform's errors.
  LocalProgram(Platform& platform, Place gpu, Schedule schedule, std::span<const Elements> arrays, Stream& stream);

  DeviceExecution& execution() noexcept { return execution_; }

 private:
  DeviceExecution execution_;
  Memory landing_;
};

}  // namespace waywiser
