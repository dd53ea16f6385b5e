#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/schedule_check.hpp"
#include "waywiser/comm/session/execution.hpp"

namespace waywiser {
namespace {

constexpr std::size_t in_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

void Execution::bind(const std::shared_ptr<const Members>& members, std::shared_ptr<const Schedule> schedule,
                     std::span<const Elements> arrays) {
  members_ = members;
  schedule_ = std::move(schedule);
  if (const auto why = why_invalid(*schedule_)) throw Error(ErrorKind::invalid_input, "a schedule: " + *why);
  if (schedule_->input_count + schedule_->output_count + schedule_->scratch_count != 0)
    throw Error(ErrorKind::invalid_input, "a prepared schedule has only arrays, no input, output or scratch");
  input_ = {};
  output_ = {};
  check_fit();
  bind_arrays(arrays);
}

void Execution::bind_arrays(std::span<const Elements> arrays) {
  arrays_.clear();
  put_.clear();
  const bool puts = std::ranges::any_of(schedule_->steps, [](const Step& step) { return step.kind >= StepKind::put; });
  if (schedule_->arrays.empty() && arrays.empty() && !puts) return;
  const auto is_given = [](const ScheduleArray& array) { return array.use <= ArrayUse::taken; };
  if (const auto given = static_cast<std::size_t>(std::ranges::count_if(schedule_->arrays, is_given));
      given != arrays.size())
    throw Error(ErrorKind::invalid_input,
                "a schedule of " + std::to_string(given) + " arrays is given " + std::to_string(arrays.size()));
  std::size_t next = 0, own = 0;
  for (const ScheduleArray& array : schedule_->arrays) {
    const std::size_t bytes = array.count * bytes_of(array.type);
    if (!is_given(array)) {
      own += in_lines(bytes);
      continue;
    }
    const Elements& given = arrays[next++];
    if (given.type != array.type || given.region.bytes < bytes)
      throw Error(ErrorKind::invalid_input, "array " + std::to_string(next - 1) + " of a schedule has " +
                                                std::to_string(given.count()) + " " + std::string(name(given.type)) +
                                                " instead of " + std::to_string(array.count) + " " +
                                                std::string(name(array.type)));
  }
  own_.grow_to(own + put_bytes());
  next = own = 0;
  for (const ScheduleArray& array : schedule_->arrays) {
    arrays_.push_back(is_given(array) ? arrays[next++].region.data : own_.data() + own);
    if (!is_given(array)) own += in_lines(array.count * bytes_of(array.type));
  }
  bind_puts(own_.data() + own);
}

std::size_t Execution::put_bytes() const {
  std::size_t total = 0;
  for (const Step& step : schedule_->steps)
    if (step.kind == StepKind::put) total += in_lines(bytes(step.source));
  return total;
}

void Execution::bind_puts(std::byte* memory) {
  const std::vector<const Step*> puts = puts_of_signals(*schedule_);
  put_.resize(puts.size());
  for (const Step& step : schedule_->steps) {
    if (step.kind != StepKind::put) continue;
    put_[index_of(step)] = {memory, bytes(step.source), host(0)};
    memory += in_lines(bytes(step.source));
  }
  for (std::size_t i = 0; i < puts.size(); ++i)
    if (puts[i] != nullptr) put_[i] = put_[index_of(*puts[i])];
}

}  // namespace waywiser
