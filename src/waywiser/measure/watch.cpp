#include "waywiser/measure/watch.hpp"

#include <algorithm>

namespace waywiser {
namespace {

constexpr Seconds report_interval = 0.1, save_interval = 20;

}  // namespace

Watch::Watch(const Meter& meter, Seconds budget, const ProgressCallback& progress, SoFar so_far)
    : meter_(meter),
      budget_(budget),
      progress_(progress),
      so_far_(std::move(so_far)),
      start_(meter.now()),
      reported_(start_ - report_interval),
      saved_(start_) {}

bool Watch::begin(std::string label) {
  label_ = std::move(label);
  return keep_on();
}

bool Watch::begin(const PairClass& pair_class, Operation operation, Bytes bytes) {
  const auto& [source, destination] = pair_class.members.front();
  const Path pair{{}, source, destination, pair_class.processes, {}};
  return begin(pair_text(pair) + " " + std::string(name(operation)) + " " + format_bytes(bytes));
}

bool Watch::keep_on() {
  if (stopped_ || !progress_ || meter_.now() - reported_ < report_interval) return !stopped_;
  reported_ = meter_.now();
  // The steps differ a thousandfold and the last ones take what time there is: only the budget is sure.
  Progress progress{done_, total_, std::clamp(left(), 0.0, budget_), label_, std::nullopt};
  if (so_far_ && meter_.now() - saved_ >= save_interval) {
    saved_ = meter_.now();
    progress.so_far = so_far_();
  }
  stopped_ = !progress_(progress);
  return !stopped_;
}

}  // namespace waywiser
