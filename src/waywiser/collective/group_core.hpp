#pragma once

#include <memory>
#include <span>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"
#include "waywiser/comm/session/execution.hpp"
#include "waywiser/comm/session/lane_execution.hpp"
#include "waywiser/comm/session/session.hpp"

namespace waywiser {

// What all calls of one group share: its members, its turn, its call numbers, which are equal at all ranks, and how it
// runs a schedule on the hosts.
class GroupCore final : public RankExchange, public std::enable_shared_from_this<GroupCore> {
 public:
  GroupCore(std::shared_ptr<Session> session, Members members);
  GroupCore(const GroupCore&) = delete;
  GroupCore& operator=(const GroupCore&) = delete;

  // Held around each call of the group (std::lock_guard). Throws invalid_input if another thread is in a call of the
  // rank, or of the group if threads share the rank.
  void lock() {
    keep_out();
    session_->lock();
  }
  void unlock() noexcept {
    session_->unlock();
    if (session_->call_lock().is_shared()) own_.unlock();
  }
  // The same around calls that belong together (Hold): between them others have their turns.
  void hold() {
    if (!session_->call_lock().is_shared()) return session_->hold();
    if (!own_.hold()) refuse_thread();
  }
  void let_go() noexcept { session_->call_lock().is_shared() ? own_.let_go() : session_->let_go(); }

  Session& session() const noexcept { return *session_; }
  const std::shared_ptr<Session>& shared_session() const noexcept { return session_; }
  const Members& members() const noexcept { return *members_; }
  const std::shared_ptr<const Members>& shared_members() const noexcept { return members_; }
  int rank() const noexcept { return members_->rank; }
  int size() const noexcept { return members_->size(); }
  // Throws invalid_input; `what`: for example "send to".
  void check_rank(int rank, const char* what) const {
    if (rank < 0 || rank >= size()) [[unlikely]]
      refuse_rank(rank, what);
  }

  // A call with the next number. All ranks make the same collectives, but each has messages of its own.
  Call next_call(CallKind kind, ConstElements data, int peer = -1, ReduceOp op = ReduceOp::sum, int root = -1) {
    const std::uint64_t number = is_collective(kind) ? ++collectives_ : ++messages_;
    const int peer_in_job = peer < 0 ? -1 : static_cast<int>(members_->peer(peer));
    return {kind, data.type, op, members_->key(), root, peer, number, data.count(), peer_in_job};
  }

  // A collective with the next number. `count`: as CollectiveCall counts; `data`: what the ranks compare.
  CollectiveCall next_collective(Collective operation, ConstElements data, std::size_t count,
                                 ReduceOp op = ReduceOp::sum, int root = -1);

  // A collective rejected because of its arguments uses no number, so that this rank's numbers stay equal to those of
  // the others.
  void take_back(const Call& call) noexcept {
    if (is_collective(call.kind) && collectives_ == call.sequence) --collectives_;
  }

  // The same call with the next number: its own was taken back, for calls that come first.
  Call numbered_again(Call call) noexcept {
    call.sequence = ++collectives_;
    return call;
  }

  // The call with the machines of its ranks.
  CollectiveCall with_machines(const CollectiveCall& call) const;
  // Runs a schedule on the hosts; GPU arrays are staged through host memory. Complete when it returns.
  void run(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output);
  // The same of host memory, by lanes.
  void run(const Call& call, const std::shared_ptr<const LaneSchedule>& schedule, ConstRegion input, Region output);
  // Starts it; the session advances it.
  std::shared_ptr<Activity> start(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input,
                                  Elements output);

  // By the default algorithms, whatever HostCollectives uses.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void broadcast(std::span<std::byte> data, int root) override;
  // The same all_gather under another name: a rank that calls something else gets an error.
  void all_gather_for(CallKind kind, ConstElements mine, Elements all);

 private:
  struct Spares;
  void keep_out() {
    if (session_->call_lock().is_shared() && !own_.lock()) [[unlikely]]
      refuse_thread();
  }
  [[noreturn]] void refuse_thread() const;
  [[noreturn]] void refuse_rank(int rank, const char* what) const;
  // For a call that only begins: its buffers have been used before, so their pages are there.
  std::shared_ptr<Execution> spare_execution();
  void run_usual(const CollectiveCall& wanted, ConstElements input, Elements output);

  const std::shared_ptr<Session> session_;
  const std::shared_ptr<const Members> members_;
  const std::shared_ptr<Spares> spares_;
  CallLock own_{false};  // if threads share the rank
  std::uint64_t messages_ = 0, collectives_ = 0;
  Execution execution_;  // of blocking calls, as the next
  LaneExecution lane_execution_;
};

}  // namespace waywiser
