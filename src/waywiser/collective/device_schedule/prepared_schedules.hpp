#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/collective/device_schedule/device_execution.hpp"
#include "waywiser/collective/gpu/receive_buffers.hpp"

namespace waywiser {

class RankExchange;

// The schedules that the ranks of one group have prepared on their GPUs, with their landing memory, which comes from
// the receive arena like the group's slice. When all ranks have dropped a schedule, the next prepare() returns its
// memory.
class PreparedSchedules {
 public:
  PreparedSchedules(Platform& platform, PeerMemory& peers, ReceiveBuffers& buffers, Place gpu, int rank,
                    ProgramAlgorithms algorithms, int ranks_on_a_gpu)
      : platform_(platform),
        peers_(peers),
        buffers_(buffers),
        gpu_(gpu),
        rank_(rank),
        algorithms_(std::move(algorithms)),
        ranks_on_a_gpu_(ranks_on_a_gpu) {}

  // Collective; an error of any rank is thrown at all ranks: unavailable if the arena has no room even for the slots of
  // messages that cannot go direct.
  std::shared_ptr<DeviceExecution> prepare(RankExchange& exchange, const std::shared_ptr<const Schedule>& schedule,
                                           std::span<const Elements> arrays, ReduceOp op);

  // See ProgramAlgorithms; of the schedules prepared from now on.
  void set_algorithm(std::optional<ProgramAlgorithm> only) { algorithms_.set(only); }
  // As FusedCollective::keep_context(), of those too.
  void keep_context(std::uint32_t* word) { kept_ = word; }
  void set_why_no_ll128(const std::string& why) { algorithms_.set_why_no_ll128(why); }

  // Both are callable from any thread.
  std::optional<Error> failure(const std::string& stopped, std::span<const int> in_job) const;
  void stop() noexcept;
  // Nothing is enqueued any more: closes the memory of other ranks.
  void let_go() noexcept;

 private:
  std::shared_ptr<DeviceExecution> prepare_by(const ProgramAlgorithms& algorithms, RankExchange& exchange,
                                              const std::shared_ptr<const Schedule>& schedule,
                                              std::span<const Elements> arrays, ReduceOp op);
  struct Entry {
    std::uint64_t id = 0;
    std::shared_ptr<DeviceExecution> execution;  // dropped once this is the only owner
    Region own;
    std::vector<std::shared_ptr<const Memory>> opened;
  };
  struct Offer;
  std::vector<Offer> offers_of_all(RankExchange& exchange, const Offer& mine, int ranks) const;
  using DroppedList = std::array<std::uint64_t, 16>;  // the oldest ones
  void give_back_dropped(RankExchange& exchange, int ranks);
  DroppedList dropped() const;
  std::vector<Region> close_dropped(const std::vector<DroppedList>& lists);
  Region take(const DeviceExecution& execution);
  std::vector<Region> open(Entry& entry, const std::vector<Offer>& offers);

  Platform& platform_;
  PeerMemory& peers_;
  ReceiveBuffers& buffers_;
  const Place gpu_;
  const int rank_;
  ProgramAlgorithms algorithms_;
  const int ranks_on_a_gpu_;
  std::uint32_t* kept_ = nullptr;
  std::uint64_t prepared_ = 0;
  mutable std::mutex mutex_;  // guards entries_
  std::vector<Entry> entries_;
};

}  // namespace waywiser
