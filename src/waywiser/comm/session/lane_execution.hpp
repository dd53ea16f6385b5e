#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/schedule.hpp"
#include "waywiser/comm/session/scratch_memory.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/device/region.hpp"

namespace waywiser {

// A schedule whose messages all fit into lanes, as one rank carries it out: its steps in one order, of each round first
// what it sends. Offsets and lengths are in bytes.
struct LaneSchedule {
  struct Step {
    StepKind kind = StepKind::copy;  // send, receive, receive_reduce, copy or reduce
    bool begins_round = false;
    Area to = Area::output, from = Area::input;
    std::int32_t peer = -1;
    std::uint32_t peer_in_job = 0;
    std::size_t destination = 0, source = 0, bytes = 0;
  };
  std::vector<Step> steps;
  std::string_view algorithm;
  std::size_t input = 0, output = 0, scratch = 0;  // what it needs of each
  std::size_t arriving = 0;                        // at this rank
  std::size_t longest = 0;                         // of its messages
};

// nullptr: a message is too long, a peer has no lane, or a step is of another kind or of blocks that are not
// contiguous.
std::shared_ptr<const LaneSchedule> lane_schedule(const Schedule& schedule, std::size_t element_bytes,
                                                  const Members& members, const MailboxMessages& lanes);

// The next message of the peer, of a known length. Looks for some microseconds, where other ranks want this core only a
// few times; nothing if it has not come by then, or if it would not come through a lane.
std::optional<Received> receive_soon(Session& session, std::uint32_t peer, Tag tag, std::byte* into, std::size_t bytes);

// Runs such a schedule: each message straight into or out of its lane. What a lane has no room for, or what has not
// come after a short while, becomes a message as all others. Other ranks may run the same schedule by an Execution.
class LaneExecution final : public Activity {
 public:
  explicit LaneExecution(Session& session) : session_(session) {}
  LaneExecution(const LaneExecution&) = delete;
  LaneExecution& operator=(const LaneExecution&) = delete;
  ~LaneExecution() override {
    if (running_) session_.give_up(*this);
  }

  // The memory must live until completion. Throws invalid_input if it does not match the schedule.
  void begin(const std::shared_ptr<const Members>& members, const Call& call,
             const std::shared_ptr<const LaneSchedule>& schedule, ConstRegion input, Region output);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override;
  void abandon() noexcept override;

 private:
  using Step = LaneSchedule::Step;
  bool send(const Step& step);
  bool receive(const Step& step);
  void finish(const Step& step, const Received& came);
  // In its place, or, if it is to be added, apart.
  std::byte* landing(const Step& step) noexcept {
    return step.kind == StepKind::receive_reduce ? scratch_.data() + schedule_->scratch : destination(step);
  }
  std::byte* destination(const Step& step) const noexcept {
    return areas_[static_cast<std::size_t>(step.to)] + step.destination;
  }
  const std::byte* source(const Step& step) const noexcept {
    return areas_[static_cast<std::size_t>(step.from)] + step.source;
  }
  Tag tag_of(const Step& step) const { return members_->tag(step.peer, call_.sequence, call_); }

  Session& session_;
  std::shared_ptr<const Members> members_;
  std::shared_ptr<const LaneSchedule> schedule_;
  Call call_;
  std::array<std::byte*, 3> areas_{};  // input, which is never written, output, scratch
  ScratchMemory scratch_;              // behind the schedule's own: room for a message that is to be added
  Message message_;                    // of the step that waits, if there is one
  bool waits_ = false, running_ = false;
  std::size_t next_ = 0;      // step
  std::size_t received_ = 0;  // bytes so far
};

}  // namespace waywiser
