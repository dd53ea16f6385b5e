#include "waywiser/collective/group_core.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/comm/windows/host_staging.hpp"

namespace waywiser {
namespace {

constexpr std::size_t most_spare_executions = 8;

// Ranks of one machine get the same number, so that algorithms can first work within machines.
std::vector<int> machines_of(const Session& session, const Members& members) {
  std::vector<int> machines;
  for (const int rank : members.world) {
    const std::string& machine = session.introduction(rank).machine_id;
    const auto same = std::ranges::find_if(
        members.world, [&](int other) { return session.introduction(other).machine_id == machine; });
    machines.push_back(static_cast<int>(same - members.world.begin()));
  }
  const bool one = std::ranges::all_of(machines, [](int machine) { return machine == 0; });
  return one ? std::vector<int>() : machines;
}

}  // namespace

GroupCore::GroupCore(std::shared_ptr<Session> session, Members members)
    : session_(std::move(session)),
      members_(std::make_shared<const Members>(std::move(members))),
      spares_(std::make_shared<Spares>()),
      execution_(*session_),
      lane_execution_(*session_) {}

void GroupCore::refuse_thread() const {
  throw Error(ErrorKind::invalid_input,
              "rank " + std::to_string(rank()) + ": another thread is in a call of this group" +
                  ": one thread at a time may use a group; make one for each thread by split");
}

void GroupCore::refuse_rank(int rank, const char* what) const {
  throw Error(ErrorKind::invalid_input, std::string(what) + " rank " + std::to_string(rank) +
                                            ": the group has ranks 0 to " + std::to_string(size() - 1));
}

CollectiveCall GroupCore::next_collective(Collective operation, ConstElements data, std::size_t count, ReduceOp op,
                                          int root) {
  CollectiveCall call;
  call.as = next_call(kind_of(operation), data, -1, op, root);
  call.operation = operation;
  call.rank = rank();
  call.ranks = size();
  call.root = std::max(root, 0);
  call.count = count;
  return call;
}

CollectiveCall GroupCore::with_machines(const CollectiveCall& call) const {
  CollectiveCall complete = call;
  complete.machine_of = machines_of(*session_, *members_);
  return complete;
}

void GroupCore::run(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  if (is_staged(input) || is_staged(output))
    return session_->wait_for(*start(call, std::move(schedule), input, output));
  const InCall in_call(*session_, call);
  execution_.begin(members_, call, std::move(schedule), input, output);
  session_->wait(execution_);
}

void GroupCore::run(const Call& call, const std::shared_ptr<const LaneSchedule>& schedule, ConstRegion input,
                    Region output) {
  const InCall in_call(*session_, call);
  lane_execution_.begin(members_, call, schedule, input, output);
  session_->wait(lane_execution_);
}

std::shared_ptr<Activity> GroupCore::start(const Call& call, std::shared_ptr<const Schedule> schedule,
                                           ConstElements input, Elements output) {
  const InCall in_call(*session_, call);
  std::unique_ptr<Staging> staging;
  if (is_staged(input) || is_staged(output)) staging = std::make_unique<Staging>(*session_);
  std::shared_ptr<Execution> execution = spare_execution();
  execution->begin(members_, call, std::move(schedule), staging ? staging->input(input) : input,
                   staging ? staging->output(output) : output);
  const std::shared_ptr<Activity> operation = staged(std::move(execution), std::move(staging));
  session_->start(operation);
  return operation;
}

// Its last owner may be in another thread.
struct GroupCore::Spares {
  std::mutex mutex;
  std::vector<std::unique_ptr<Execution>> executions;

  std::unique_ptr<Execution> take(Session& session) {
    const std::lock_guard lock(mutex);
    if (executions.empty()) return std::make_unique<Execution>(session);
    std::unique_ptr<Execution> last = std::move(executions.back());
    executions.pop_back();
    return last;
  }

  void give_back(std::unique_ptr<Execution> execution) {
    if (execution->is_running()) return;
    execution->keeps.reset();
    const std::lock_guard lock(mutex);
    if (executions.size() < most_spare_executions) executions.push_back(std::move(execution));
  }
};

std::shared_ptr<Execution> GroupCore::spare_execution() {
  return {spares_->take(*session_).release(),
          [spares = spares_](Execution* over) { spares->give_back(std::unique_ptr<Execution>(over)); }};
}

void GroupCore::run_usual(const CollectiveCall& wanted, ConstElements input, Elements output) {
  const CollectiveCall here = with_machines(wanted);
  run(here.as, std::make_shared<const Schedule>(default_algorithm(here, bytes_of(here.as.type)).make(here)), input,
      output);
}

void GroupCore::all_gather_for(CallKind kind, ConstElements mine, Elements all) {
  CollectiveCall wanted = next_collective(Collective::all_gather, mine, mine.count());
  wanted.as.kind = kind;
  run_usual(wanted, mine, all);
}

void GroupCore::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  all_gather_for(CallKind::all_gather, mine, all);
}

void GroupCore::broadcast(std::span<std::byte> data, int root) {
  run_usual(next_collective(Collective::broadcast, Elements(data), data.size(), ReduceOp::sum, root), Elements(data),
            data);
}

}  // namespace waywiser
