#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/device_schedule/device_execution.hpp"
#include "waywiser/collective/device_schedule/packed_arrays.hpp"
#include "waywiser/comm/session/execution.hpp"
#include "waywiser/group/group_state.hpp"
#include "waywiser/group/prepared.hpp"

namespace waywiser {

// The parts of a prepared operation, for the group that makes it. One of three executors runs it,
// or it is a call of the group.
struct [[gnu::visibility("hidden")]] Prepared::State {
  // Collective. `exchange`: the same operation as messages, if it has that form, for arrays that no executor serves.
  State(std::shared_ptr<Group::State> of, const std::shared_ptr<const Schedule>& schedule,
        std::span<const Elements> arrays, const std::optional<std::span<const ArrayExchange>>& exchange, ReduceOp op);
  // Collective.
  State(std::shared_ptr<Group::State> of, const WantedCollective& wanted, const CollectiveCall& call);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  void start(Stream& stream);
  void start();
  void wait();

  const std::shared_ptr<Group::State> group;
  const std::optional<WantedCollective> collective;
  const Call as;                         // of a collective
  std::shared_ptr<PackedArrays> packed;  // carried by messages
  std::vector<Exchange> messages;
  const ReduceOp reduce_op;
  std::shared_ptr<Execution> on_hosts;
  std::shared_ptr<DeviceExecution> on_gpus;
  std::string why_staged;
  bool all_on_gpus = false;     // if so, messages may be on a stream
  std::shared_ptr<void> owner;  // owns the arrays
  Future begun;
  bool waits_for_stream = false;  // a start has begun in the group's own stream
  bool unpacks = false;           // at the end of the start under way

 private:
  void prepare_on(StreamOperations& gpus, const std::shared_ptr<const Schedule>& schedule,
                  std::span<const Elements> arrays);
  void set_up_messages(std::span<const ArrayExchange> exchange, std::span<const Elements> arrays);
  Call next_call() const;
  void start_on_hosts(const Call& call);
  void check_is_over() const;
};

}  // namespace waywiser
