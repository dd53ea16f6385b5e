#include "waywiser/comm/session/execution.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/reduce.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser {
namespace {

// Whether the step's bytes first land in another buffer.
bool arrives_apart(const Step& step) {
  return step.kind == StepKind::receive_reduce || (receives(step.kind) && step.destination.layout != 0);
}
bool goes_apart(const Step& step) { return step.kind == StepKind::send && step.source.layout != 0; }

}  // namespace

void Execution::begin(const std::shared_ptr<const Members>& members, const Call& call,
                      std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  bind(members, call, std::move(schedule), input, output);
  restart();
}

void Execution::bind(const std::shared_ptr<const Members>& members, const Call& call,
                     std::shared_ptr<const Schedule> schedule, ConstElements input, Elements output) {
  if (members_ != members) members_ = members;
  call_ = call;
  schedule_ = std::move(schedule);
  input_ = input.region;
  output_ = output.region;
  check_fit();
  bind_arrays({});
  scratch_.grow_to(schedule_->scratch_count * bytes_of(call.type));
}

void Execution::begin(const Call& call) {
  call_ = call;
  restart();
}

void Execution::restart() {
  pending_.clear();
  signals_.clear();
  const auto is_signal = [](const Step& step) { return step.kind == StepKind::signal; };
  signals_.reserve(static_cast<std::size_t>(std::ranges::count_if(schedule_->steps, is_signal)));
  open_ = next_ = received_ = signals_ended_ = 0;
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
  if (!finish_signals()) return false;
  finish_schedule();
  return true;
}

std::size_t Execution::arrival_bytes() const {
  const auto& steps = schedule_->steps;
  std::size_t total = 0;
  for (std::size_t i = next_; i < steps.size() && steps[i].round == steps[next_].round; ++i) {
    if (arrives_apart(steps[i])) total += bytes(steps[i].destination);
    if (goes_apart(steps[i])) total += bytes(steps[i].source);
  }
  return total;
}

// Receives first, so that arriving messages find their buffers. But a short message is copied inline where it is sent,
// and its receiver should not wait for this rank's receives.
void Execution::start_round() {
  const auto& steps = schedule_->steps;
  const std::size_t first = next_;
  fault_point(ProtocolStep::round);
  arrivals_.grow_to(arrival_bytes());
  next_arrival_ = arrivals_.data();
  while (next_ < steps.size() && steps[next_].round == steps[first].round) ++next_;
  const std::span round(steps.data() + first, next_ - first);
  pending_.clear();
  pending_.reserve(round.size());
  const bool sends_first = std::ranges::all_of(
      round, [this](const Step& step) { return !sends(step.kind) || outgoing_bytes(step) <= longest_short; });
  if (sends_first) start_sends(round);
  start_receives(round);
  if (!sends_first) start_sends(round);
  open_ = pending_.size();
  for (const Step& step : round)
    if (step.kind == StepKind::put)
      gather(const_cast<std::byte*>(put_[index_of(step)].data), step.source);
    else if (is_local(step.kind))
      work_locally(step);
}

void Execution::start_sends(std::span<const Step> round) {
  for (const Step& step : round)
    if (sends(step.kind)) step.kind == StepKind::signal ? start_signal(step) : start_send(step);
}

void Execution::start_receives(std::span<const Step> round) {
  for (const Step& step : round)
    if (receives(step.kind)) start_receive(step);
}

void Execution::start_receive(const Step& step) {
  Pending& pending = pending_.emplace_back();
  pending.step = &step;
  pending.tag = members_->tag(step.peer, call_.sequence, call_);
  const std::size_t length = bytes(step.destination);
  if (arrives_apart(step)) pending.arrival = std::exchange(next_arrival_, next_arrival_ + length);
  std::byte* into = pending.arrival != nullptr ? pending.arrival : at(step.destination);
  session_.engine().receive_sized(members_->peer(step.peer), pending.tag, into, length, pending.message);
}

void Execution::start_send(const Step& step) {
  Pending& pending = pending_.emplace_back();
  pending.step = &step;
  if (!goes_apart(step)) return send(pending, at(step.source));
  pending.arrival = std::exchange(next_arrival_, next_arrival_ + bytes(step.source));
  gather(pending.arrival, step.source);
  send(pending, pending.arrival);
}

void Execution::start_signal(const Step& step) {
  Pending& pending = signals_.emplace_back();
  pending.step = &step;
  send(pending, put_[index_of(step)].data);
}

void Execution::send(Pending& pending, const std::byte* data) {
  const Step& step = *pending.step;
  session_.engine().send_sized(members_->peer(step.peer), members_->tag(members_->rank, call_.sequence, call_), data,
                               outgoing_bytes(step), pending.message, Awaited::by_all);
}

void Execution::work_locally(const Step& step) {
  if (step.source.layout + step.destination.layout != 0) return work_on_runs(step);
  const bool in_place = at(step.destination) == at(step.source);
  if (step.kind == StepKind::reduce)
    reduce(type_of(step.source), call_.op, at(step.destination), at(step.source), step.source.count);
  else if (!in_place)
    std::memmove(at(step.destination), at(step.source), bytes(step.source));
}

// Copies directly if source or destination is contiguous.
void Execution::work_on_runs(const Step& step) {
  if (step.kind != StepKind::reduce && step.destination.layout == 0) return gather(at(step.destination), step.source);
  if (step.kind != StepKind::reduce && step.source.layout == 0) return spread(step.destination, at(step.source));
  runs_.grow_to(bytes(step.source));
  gather(runs_.data(), step.source);
  step.kind == StepKind::reduce ? reduce_into(step.destination, runs_.data()) : spread(step.destination, runs_.data());
}

void Execution::gather(std::byte* to, const Block& from) const {
  const std::byte* base = buffer(from);
  const std::size_t size = bytes_of(type_of(from));
  for_each_run(*schedule_, from, [&](std::size_t first, std::size_t count) {
    std::memcpy(to, base + first * size, count * size);
    to += count * size;
  });
}

void Execution::spread(const Block& to, const std::byte* from) const {
  std::byte* base = buffer(to);
  const std::size_t size = bytes_of(type_of(to));
  for_each_run(*schedule_, to, [&](std::size_t first, std::size_t count) {
    std::memcpy(base + first * size, from, count * size);
    from += count * size;
  });
}

void Execution::reduce_into(const Block& to, const std::byte* from) {
  std::byte* base = buffer(to);
  const std::size_t size = bytes_of(type_of(to));
  for_each_run(*schedule_, to, [&](std::size_t first, std::size_t count) {
    reduce(type_of(to), call_.op, base + first * size, from, count);
    from += count * size;
  });
}

// In the order of the steps, so that reductions of one round have the same order in every run.
bool Execution::finish_messages() {
  while (open_ != 0) {
    Pending& pending = pending_[pending_.size() - open_];
    if (!session_.engine().test(pending.message)) return false;
    finish(pending);
    --open_;
  }
  return true;
}

bool Execution::finish_signals() {
  for (; signals_ended_ < signals_.size(); ++signals_ended_)
    if (!session_.engine().test(signals_[signals_ended_].message)) return false;
  return true;
}

void Execution::finish(Pending& pending) {
  const Step& step = *pending.step;
  if (sends(step.kind)) return;
  if (const auto why = unlike(pending.message.info, pending.tag, bytes(step.destination), step.peer))
    session_.fail(ErrorKind::invalid_input, text(call_) + ": " + *why);
  received_ += bytes(step.destination);
  if (step.kind == StepKind::receive_reduce)
    reduce_into(step.destination, pending.arrival);
  else if (pending.arrival != nullptr)
    spread(step.destination, pending.arrival);
}

void Execution::finish_schedule() {
  running_ = false;
  if (schedule_->output_count != 0)
    end_reduction(call_.type, call_.op, output_.data, schedule_->output_count, members_->size());
}

// The input is never written.
std::byte* Execution::buffer(const Block& block) const {
  switch (block.area) {
    case Area::input: return const_cast<std::byte*>(input_.data);
    case Area::output: return output_.data;
    case Area::scratch: return const_cast<std::byte*>(scratch_.data());
    case Area::array: return arrays_[block.array];
  }
  return nullptr;
}

std::byte* Execution::at(const Block& block) const {
  return block.count == 0 ? nullptr : buffer(block) + block.offset * bytes_of(type_of(block));
}

std::string Execution::progress_text() const {
  std::size_t expected = 0;
  for (const Step& step : schedule_->steps)
    if (receives(step.kind)) expected += bytes(step.destination);
  std::string text = std::to_string(received_) + " of " + std::to_string(expected) + " bytes arrived (" +
                     std::string(schedule_->algorithm) + ")";
  if (open_ == 0 && signals_ended_ == signals_.size()) return text;
  const Step& step = open_ == 0 ? *signals_[signals_ended_].step : *pending_[pending_.size() - open_].step;
  return text + (sends(step.kind) ? ", sending to " : ", waiting for ") + members_->text_of(step.peer);
}

void Execution::abandon() noexcept {
  for (auto* list : {&pending_, &signals_})
    for (Pending& pending : *list) session_.engine().cancel(pending.message);
  open_ = 0;
  running_ = false;
}

}  // namespace waywiser
