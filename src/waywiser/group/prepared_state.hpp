#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waywiser/collective/device_schedule/device_execution.hpp"
#include "waywiser/comm/session/execution.hpp"
#include "waywiser/group/group_state.hpp"
#include "waywiser/group/prepared.hpp"

namespace waywiser {

// What a prepared operation is made of, for the group that makes it. One of three carries it out.
struct [[gnu::visibility("hidden")]] Prepared::State {
  // By all ranks together. `exchange`: the messages that do the same where no executor can, if there are such.
  State(std::shared_ptr<Group::State> of, const std::shared_ptr<const Schedule>& schedule,
        std::span<const Elements> arrays, const std::optional<std::span<const Exchange>>& exchange, ReduceOp op);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  void start(Stream& stream);
  void start();
  void wait();

  const std::shared_ptr<Group::State> group;
  std::vector<Exchange> messages;
  const ReduceOp reduce_op;
  std::shared_ptr<Execution> on_hosts;
  std::shared_ptr<DeviceExecution> on_gpus;
  std::string why_staged;
  bool all_on_gpus = false;     // then messages may be on a stream
  std::shared_ptr<void> owner;  // of the arrays
  Future begun;
  bool waits_for_stream = false;  // the group's own, in which a start has begun

 private:
  Call next_call() const;
  void check_is_over() const;
};

}  // namespace waywiser
