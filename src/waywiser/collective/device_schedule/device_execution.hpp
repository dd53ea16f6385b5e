#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/landing_plan.hpp"
#include "waywiser/collective/device_schedule/translate.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// One rank's schedule, prepared on its GPU: one kernel a start, which sends, waits and reduces by itself. What changes
// from start to start is kept on the GPU, so that a captured graph can be replayed. All ranks start it as often, and
// the starts of one run one after another. Each of up to 8 ranks has a GPU that reaches the memory of all others.
class DeviceExecution {
 public:
  // `arrays`: those of the schedule that are the caller's, in their order, on this GPU; they must stay. Throws
  // invalid_input (a schedule that is not valid, arrays that do not fit, avg), or as the platform does.
  DeviceExecution(Platform& platform, Place gpu, std::shared_ptr<const Schedule> schedule,
                  std::span<const Elements> arrays, ReduceOp op);

  // What the ranks tell each other before connect().
  const program::LandingPlan& plan() const { return plan_; }
  Bytes landing_bytes() const { return plan_.bytes(); }
  // Clears `landing`, which others write into from then on; it must stay.
  void set_landing(Region landing, Stream& stream);
  // Of all ranks in their order, landings as this process has them mapped for this GPU. Throws invalid_input where
  // the ranks' schedules do not fit together, the same at all ranks.
  void connect(std::span<const Region> landings, std::span<const program::LandingPlan> plans, Stream& stream);

  // Throws as Stream::launch. A kernel that waits for a rank in vain traps.
  void enqueue(Stream& stream, Seconds deadline);
  // How a start has failed; nothing while none has. `stopped`: why stop() was called. From any thread.
  std::optional<Error> failure(const std::string& stopped) const;
  // Ends all waits inside kernels, for good: they trap.
  void stop() noexcept;

 private:
  void check(std::span<const Elements> arrays) const;
  void allocate(Platform& platform);
  program::Addresses addresses(std::span<const Region> landings, Stream& stream) const;
  void upload(const program::Translation& translation, Stream& stream);
  block::Notice& notice() const;

  Platform& platform_;
  const Place gpu_;
  const std::shared_ptr<const Schedule> schedule_;
  const std::vector<Elements> arrays_;
  const ReduceOp op_;
  const program::LandingPlan plan_;
  Region landing_;
  Memory own_, program_, notice_;  // arrays that are not the caller's; what the kernel reads; what it tells the host
  std::unique_ptr<LaunchCache> launches_;
  program::ProgramArguments terms_;
  std::atomic<Seconds> deadline_ = 0;
};

}  // namespace waywiser
