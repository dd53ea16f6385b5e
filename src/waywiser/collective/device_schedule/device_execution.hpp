#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/direct_messages.hpp"
#include "waywiser/collective/device_schedule/landing_plan.hpp"
#include "waywiser/collective/device_schedule/translate.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// One rank's schedule, prepared on its GPU: each start is one kernel that sends, waits and reduces. State that changes
// from start to start is kept on the GPU, so that a captured graph can be replayed. All ranks start it equally often,
// and its starts run one after another. For up to 8 ranks, whose GPUs reach each other's memory.
class DeviceExecution {
 public:
  // `arrays`: the caller-owned arrays of the schedule, in their order, on this GPU; they must stay. Throws
  // invalid_input (an invalid schedule, arrays that do not match, avg, too many blocks), or the platform's errors.
  DeviceExecution(Platform& platform, Place gpu, std::shared_ptr<const Schedule> schedule,
                  std::span<const Elements> arrays, ReduceOp op, ProgramAlgorithms algorithms);

  // The messages that the other ranks could store straight into this rank's arrays, and the memory of an array.
  program::DirectMessages direct_messages() const;
  Region array(std::uint32_t index) const { return regions()[index]; }
  // By step, as in program::Addresses: those that the ranks have agreed on. The default is none. Before plan().
  // `why_slots`: why another message that goes not by LL needs a slot.
  void set_direct(std::vector<program::View> direct, std::string why_slots);
  const std::string& why_slots() const noexcept { return why_slots_; }

  // Exchanged between the ranks before connect().
  const program::LandingPlan& plan() const { return plan_; }
  Bytes landing_bytes() const { return plan_.bytes(); }
  // Clears `landing`, into which other ranks then write; it must stay.
  void set_landing(Region landing, Stream& stream);
  // In rank order; landings as mapped in this process for this GPU. Throws invalid_input, the same at all ranks, if the
  // ranks' schedules do not match. If `ranks_on_a_gpu` share it, their kernels wait for each other: so the blocks of
  // all of them find room at once, and none comes before the kernel ahead of it in its stream has ended.
  void connect(std::span<const Region> landings, std::span<const program::LandingPlan> plans, Stream& stream,
               int ranks_on_a_gpu = 1);

  // After connect(), for people: the kernel's blocks, and the algorithms of this rank's messages.
  std::string explain() const;

  // Throws like Stream::launch. A kernel that waits in vain for a rank traps.
  void enqueue(Stream& stream, Seconds deadline);
  // As FusedCollective::keep_context().
  void keep_context(std::uint32_t* word) noexcept;
  // The caller's arrays into which a start writes; others are empty.
  std::vector<Region> outputs() const;
  // The error of a failed start, if any. `stopped`: why stop() was called. Callable from any thread.
  std::optional<Error> failure(const std::string& stopped, std::span<const int> in_job) const;
  // Ends all waits inside kernels for good: they trap.
  void stop() noexcept;

 private:
  void check(std::span<const Elements> arrays) const;
  void allocate(Platform& platform);
  std::vector<Region> regions() const;
  program::Addresses addresses(std::span<const Region> landings, Stream& stream) const;
  void upload(const program::Translation& translation, Stream& stream);
  block::Notice& notice() const;

  Platform& platform_;
  const Place gpu_;
  const std::shared_ptr<const Schedule> schedule_;
  const std::vector<Elements> arrays_;
  const ReduceOp op_;
  const ProgramAlgorithms algorithms_;
  std::vector<program::View> direct_;
  std::string why_slots_;
  program::MessagePlans messages_;
  program::LandingPlan plan_;
  Region landing_;
  Memory own_, program_, notice_;  // arrays of its own; read by the kernel; written for the host
  std::unique_ptr<LaunchCache> launches_;
  program::ProgramArguments terms_;
  bool overlaps_ = true;
  std::atomic<Seconds> deadline_ = 0;
};

}  // namespace waywiser
