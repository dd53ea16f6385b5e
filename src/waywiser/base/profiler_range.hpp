#pragma once

#include <string>

namespace waywiser {

// NVTX, opened at the first look where WAYWISER_NVTX=1: WAYWISER_LIBNVTX, else the library that the loader finds.
struct RangeFunctions {
  int (*push)(const char* name) = nullptr;
  int (*pop)() = nullptr;
};
// nullptr: not asked for, or there is no such library, which one line on standard error says.
const RangeFunctions* range_functions();

// A named range of the calling thread in the timeline of a profiler; none with nullptr, and then `name` is not called.
class ProfilerRange {
 public:
  template <typename Name>
  ProfilerRange(const RangeFunctions* functions, Name name) : functions_(functions) {
    if (functions_ != nullptr) functions_->push(std::string(name()).c_str());
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange() {
    if (functions_ != nullptr) functions_->pop();
  }

 private:
  const RangeFunctions* functions_;
};

}  // namespace waywiser
