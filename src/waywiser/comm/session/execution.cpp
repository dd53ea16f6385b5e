#include "waywiser/comm/session/execution.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/reduce.hpp"
#include "waywiser/comm/session/fault_point.hpp"

namespace waywiser {
namespace {

bool receives(const Step& step) { return step.kind == StepKind::receive || step.kind == StepKind::receive_reduce; }

}  // namespace

void Execution::begin(const std::shared_ptr<const Members>& members, const Call& call,
                      std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  if (members_ != members) members_ = members;
  call_ = call;
  schedule_ = std::move(schedule);
  input_ = input.region;
  output_ = output.region;
  check_fit();
  scratch_.grow_to(schedule_->scratch_count * bytes_of(call.type));
  pending_.clear();
  open_ = next_ = received_ = 0;
  running_ = true;
}

void Execution::check_fit() const {
  const std::size_t size = bytes_of(call_.type);
  if (schedule_->rank != members_->rank || schedule_->ranks != members_->size())
    throw Error(ErrorKind::invalid_input, "the schedule is for rank " + std::to_string(schedule_->rank) + " of " +
                                              std::to_string(schedule_->ranks));
  if (input_.bytes < schedule_->input_count * size || output_.bytes < schedule_->output_count * size)
    throw Error(ErrorKind::invalid_input, text(call_) + ": the schedule takes " +
                                              std::to_string(schedule_->input_count) + " elements and gives " +
                                              std::to_string(schedule_->output_count) + ", the arrays are shorter");
}

bool Execution::advance() {
  if (!running_) return true;
  for (;;) {
    if (!finish_messages()) return false;
    if (next_ == schedule_->steps.size()) break;
    start_round();
  }
  finish_schedule();
  return true;
}

std::size_t Execution::arrival_bytes() const {
  const auto& steps = schedule_->steps;
  std::size_t total = 0;
  for (std::size_t i = next_; i < steps.size() && steps[i].round == steps[next_].round; ++i)
    if (steps[i].kind == StepKind::receive_reduce) total += bytes(steps[i].destination);
  return total;
}

// Receives first: what comes then finds its place. But what is short is copied where it is sent, and who waits for it
// should not wait for the receives as well.
void Execution::start_round() {
  const auto& steps = schedule_->steps;
  const std::size_t first = next_;
  fault_point(ProtocolStep::round);
  arrivals_.grow_to(arrival_bytes());
  while (next_ < steps.size() && steps[next_].round == steps[first].round) ++next_;
  const std::span round(steps.data() + first, next_ - first);
  pending_.clear();
  pending_.reserve(round.size());
  const bool sends_first = std::ranges::all_of(
      round, [this](const Step& step) { return step.kind != StepKind::send || bytes(step.source) <= longest_short; });
  if (sends_first) start_sends(round);
  start_receives(round);
  if (!sends_first) start_sends(round);
  open_ = pending_.size();
  for (const Step& step : round)
    if (!receives(step) && step.kind != StepKind::send) work_locally(step);
}

void Execution::start_sends(std::span<const Step> round) {
  for (const Step& step : round)
    if (step.kind == StepKind::send) start_send(step);
}

void Execution::start_receives(std::span<const Step> round) {
  std::byte* arrival = arrivals_.data();
  for (const Step& step : round) {
    if (!receives(step)) continue;
    start_receive(step, arrival);
    if (step.kind == StepKind::receive_reduce) arrival += bytes(step.destination);
  }
}

void Execution::start_receive(const Step& step, std::byte* arrival) {
  Pending& pending = pending_.emplace_back();
  pending.step = &step;
  pending.tag = members_->tag(step.peer, call_.sequence, call_);
  pending.arrival = step.kind == StepKind::receive_reduce ? arrival : nullptr;
  std::byte* into = pending.arrival != nullptr ? pending.arrival : write(step.destination);
  session_.engine().receive_sized(members_->peer(step.peer), pending.tag, into, bytes(step.destination),
                                  pending.message);
}

void Execution::start_send(const Step& step) {
  Pending& pending = pending_.emplace_back();
  pending.step = &step;
  session_.engine().send_sized(members_->peer(step.peer), members_->tag(members_->rank, call_.sequence, call_),
                               read(step.source), bytes(step.source), pending.message, Awaited::by_all);
}

void Execution::work_locally(const Step& step) {
  const bool in_place = write(step.destination) == read(step.source);
  if (step.kind == StepKind::copy && !in_place)
    std::memmove(write(step.destination), read(step.source), bytes(step.source));
  if (step.kind == StepKind::reduce)
    reduce(call_.type, call_.op, write(step.destination), read(step.source), step.source.count);
}

// In the order of the steps: reductions of one round are then done in the same order on every run.
bool Execution::finish_messages() {
  while (open_ != 0) {
    Pending& pending = pending_[pending_.size() - open_];
    if (!session_.engine().test(pending.message)) return false;
    finish(pending);
    --open_;
  }
  return true;
}

void Execution::finish(Pending& pending) {
  const Step& step = *pending.step;
  if (step.kind == StepKind::send) return;
  if (const auto why = unlike(pending.message.info, pending.tag, bytes(step.destination), step.peer))
    session_.fail(ErrorKind::invalid_input, text(call_) + ": " + *why);
  received_ += bytes(step.destination);
  if (step.kind == StepKind::receive_reduce)
    reduce(call_.type, call_.op, write(step.destination), pending.arrival, step.destination.count);
}

void Execution::finish_schedule() {
  running_ = false;
  if (call_.op == ReduceOp::avg) average(call_.type, output_.data, schedule_->output_count, members_->size());
}

const std::byte* Execution::read(const Block& block) const {
  const std::byte* area = block.area == Area::input    ? input_.data
                          : block.area == Area::output ? output_.data
                                                       : scratch_.data();
  return area + block.offset * bytes_of(call_.type);
}

std::byte* Execution::write(const Block& block) {
  std::byte* area = block.area == Area::output ? output_.data : scratch_.data();
  return area + block.offset * bytes_of(call_.type);
}

std::string Execution::progress_text() const {
  std::size_t expected = 0;
  for (const Step& step : schedule_->steps)
    if (receives(step)) expected += bytes(step.destination);
  std::string text = std::to_string(received_) + " of " + std::to_string(expected) + " bytes arrived (" +
                     std::string(schedule_->algorithm) + ")";
  if (open_ == 0) return text;
  const Step& step = *pending_[pending_.size() - open_].step;
  return text + (step.kind == StepKind::send ? ", sending to rank " : ", waiting for rank ") +
         std::to_string(step.peer);
}

void Execution::abandon() noexcept {
  for (Pending& pending : pending_) session_.engine().cancel(pending.message);
  open_ = 0;
  running_ = false;
}

}  // namespace waywiser
