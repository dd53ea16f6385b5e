#pragma once

#include <memory>
#include <string>

#include "waywiser/collective/gpu/call_comparison.hpp"
#include "waywiser/comm/message/activity.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {

class StreamOperations;
class Session;

// A call that goes on in the group's own stream. It is over when the GPU has reached its end and, where the hosts
// compare the ranks' calls, the comparison too.
class BegunGpuCall : public Activity {
 public:
  BegunGpuCall(Session& session, const Call& call, std::weak_ptr<StreamOperations> gpus, std::shared_ptr<Event> end,
               std::shared_ptr<const CallComparison> comparison);
  BegunGpuCall(const BegunGpuCall&) = delete;
  BegunGpuCall& operator=(const BegunGpuCall&) = delete;
  ~BegunGpuCall() override;

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return "the GPU has not finished"; }
  void abandon() noexcept override;
  bool needs_turns() const noexcept override { return false; }
  Seconds extra_time() const noexcept override;
  void explain() override;

 private:
  Session& session_;
  const Call call_;
  const std::weak_ptr<StreamOperations> gpus_;  // gone: it has waited for all calls
  std::shared_ptr<Event> end_;
  const std::shared_ptr<const CallComparison> comparison_;
};

}  // namespace waywiser
