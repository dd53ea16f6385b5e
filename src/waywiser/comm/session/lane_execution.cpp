#include "waywiser/comm/session/lane_execution.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/reduce.hpp"

namespace waywiser {
namespace {

// In which order the steps of a round are carried out.
int place_in_round(StepKind kind) { return sends(kind) ? 0 : receives(kind) ? 2 : 1; }

bool can_be_here(const Step& step) {
  const bool known = step.kind == StepKind::send || step.kind == StepKind::receive ||
                     step.kind == StepKind::receive_reduce || step.kind == StepKind::copy ||
                     step.kind == StepKind::reduce;
  const auto is_plain = [](const Block& block) { return block.layout == 0 && block.area != Area::array; };
  return known && is_plain(step.source) && is_plain(step.destination);
}

}  // namespace

std::shared_ptr<const LaneSchedule> lane_schedule(const Schedule& schedule, std::size_t element_bytes,
                                                  const Members& members, const MailboxMessages& lanes) {
  if (schedule.rank != members.rank || schedule.ranks != members.size()) return nullptr;
  LaneSchedule made;
  made.algorithm = schedule.algorithm;
  made.input = schedule.input_count * element_bytes;
  made.output = schedule.output_count * element_bytes;
  made.scratch = schedule.scratch_count * element_bytes;
  std::vector<const Step*> ordered;
  for (const Step& step : schedule.steps) ordered.push_back(&step);
  std::ranges::stable_sort(ordered, [](const Step* a, const Step* b) {
    return std::pair(a->round, place_in_round(a->kind)) < std::pair(b->round, place_in_round(b->kind));
  });
  const Step* before = nullptr;
  for (const Step* step : ordered) {
    if (!can_be_here(*step)) return nullptr;
    const bool arrives = receives(step->kind);
    LaneSchedule::Step& here = made.steps.emplace_back();
    here.kind = step->kind;
    here.begins_round = before == nullptr || before->round != step->round;
    here.to = step->destination.area;
    here.from = step->source.area;
    here.destination = step->destination.offset * element_bytes;
    here.source = step->source.offset * element_bytes;
    here.bytes = (arrives ? step->destination.count : step->source.count) * element_bytes;
    before = step;
    if (is_local(step->kind)) continue;
    here.peer = step->peer;
    here.peer_in_job = members.peer(step->peer);
    made.longest = std::max(made.longest, here.bytes);
    if (arrives) made.arriving += here.bytes;
    if (!lanes.reaches(here.peer_in_job)) return nullptr;
  }
  if (made.longest > lanes.sizes().lane) return nullptr;
  return std::make_shared<const LaneSchedule>(std::move(made));
}

std::optional<Received> receive_soon(Session& session, std::uint32_t peer, Tag tag, std::byte* into,
                                     std::size_t bytes) {
  MailboxMessages& lanes = session.engine().mailboxes();
  if (bytes > lanes.sizes().lane || !lanes.reaches(peer)) return {};
  for (unsigned look = 0; look < session.turns_between_looks(); ++look)
    if (const auto came = lanes.receive_at_once(peer, tag, into, bytes)) return came;
  return {};
}

void LaneExecution::begin(const std::shared_ptr<const Members>& members, const Call& call,
                          const std::shared_ptr<const LaneSchedule>& schedule, ConstRegion input, Region output) {
  if (members_ != members) members_ = members;
  if (schedule_ != schedule) {
    schedule_ = schedule;
    scratch_.grow_to(schedule->scratch + schedule->longest);
  }
  call_ = call;
  if (input.bytes < schedule->input || output.bytes < schedule->output)
    throw Error(ErrorKind::invalid_input, text(call) + ": the schedule takes " + std::to_string(schedule->input) +
                                              " bytes and gives " + std::to_string(schedule->output) +
                                              ", the arrays are shorter");
  areas_ = {const_cast<std::byte*>(input.data), output.data, scratch_.data()};
  next_ = received_ = 0;
  waits_ = false;
  running_ = true;
}

bool LaneExecution::advance() {
  if (!running_) return true;
  const std::vector<Step>& steps = schedule_->steps;
  for (; next_ != steps.size(); ++next_) {
    const Step& step = steps[next_];
    if (waits_) {
      if (!session_.engine().test(message_)) return false;
      waits_ = false;
      if (receives(step.kind)) finish(step, message_.info);
      continue;
    }
    if (step.begins_round) fault_point(ProtocolStep::round);
    switch (step.kind) {
      case StepKind::send:
        if (!send(step)) return false;
        break;
      case StepKind::copy:
        if (destination(step) != source(step)) std::memmove(destination(step), source(step), step.bytes);
        break;
      case StepKind::reduce:
        reduce(call_.type, call_.op, destination(step), source(step), step.bytes / bytes_of(call_.type));
        break;
      default:
        if (!receive(step)) return false;
    }
  }
  running_ = false;
  if (schedule_->output != 0)
    end_reduction(call_.type, call_.op, areas_[static_cast<std::size_t>(Area::output)],
                  schedule_->output / bytes_of(call_.type), members_->size());
  return true;
}

bool LaneExecution::send(const Step& step) {
  const Tag tag = members_->tag(members_->rank, call_.sequence, call_);
  fault_point(ProtocolStep::lane_write);
  if (session_.engine().send_at_once(step.peer_in_job, tag, source(step), step.bytes)) [[likely]]
    return true;
  message_ = {};
  session_.engine().send_sized(step.peer_in_job, tag, source(step), step.bytes, message_, Awaited::by_all);
  waits_ = message_.is_open();
  return !waits_;
}

bool LaneExecution::receive(const Step& step) {
  if (const auto came = receive_soon(session_, step.peer_in_job, tag_of(step), landing(step), step.bytes)) {
    finish(step, *came);
    return true;
  }
  message_ = {};
  session_.engine().receive_sized(step.peer_in_job, tag_of(step), landing(step), step.bytes, message_);
  waits_ = message_.is_open();
  if (!waits_) finish(step, message_.info);
  return !waits_;
}

void LaneExecution::finish(const Step& step, const Received& came) {
  if (const auto why = unlike(came, tag_of(step), step.bytes, step.peer))
    session_.fail(ErrorKind::invalid_input, text(call_) + ": " + *why);
  received_ += step.bytes;
  if (step.kind == StepKind::receive_reduce)
    reduce(call_.type, call_.op, destination(step), landing(step), step.bytes / bytes_of(call_.type));
}

std::string LaneExecution::progress_text() const {
  std::string text = std::to_string(received_) + " of " + std::to_string(schedule_->arriving) + " bytes arrived (" +
                     std::string(schedule_->algorithm) + ")";
  if (!waits_) return text;
  const Step& step = schedule_->steps[next_];
  return text + (sends(step.kind) ? ", sending to " : ", waiting for ") + members_->text_of(step.peer);
}

void LaneExecution::abandon() noexcept {
  if (waits_) session_.engine().cancel(message_);
  waits_ = running_ = false;
}

}  // namespace waywiser
