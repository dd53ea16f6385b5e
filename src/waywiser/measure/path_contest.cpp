#include "waywiser/measure/path_contest.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int longest_turn = 200'000;
constexpr double slack = 1.05;  // a figure this far above the physical limit is refused
constexpr std::size_t enough_for_a_median = 5;

// One transfer that the system interrupted must not stand for the others.
Seconds typical_time(const Sample& sample, Operation operation) {
  if (operation != Operation::latency || sample.each.size() < enough_for_a_median) return sample.seconds;
  const Seconds middle = median(sample.each);
  return middle > 0 ? middle : sample.seconds;
}

}  // namespace

Seconds sample_aim(Operation operation) { return operation == Operation::latency ? 0.0001 : 0.0003; }

PathContest::PathContest(Meter& meter, Operation operation, Bytes bytes, std::uint64_t seed)
    : Contest({sample_aim(operation), longest_turn}, seed), meter_(meter), operation_(operation), bytes_(bytes) {}

Contender& PathContest::enter(const Path& path) {
  paths_.push_back(path);
  return Contest::enter();
}

std::vector<Sample> PathContest::take(std::size_t which, int repetitions) {
  Sample sample;
  try {
    sample = meter_.take(paths_[which], operation_, bytes_, repetitions);
    sample.seconds = typical_time(sample, operation_);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::interrupted) throw;
    sample.failed = error.what();
  }
  return {std::move(sample)};
}

std::optional<std::string> PathContest::why_impossible(std::size_t which, Seconds seconds) const {
  const Limit limit = meter_.limit(paths_[which], operation_);
  const double rate = static_cast<double>(bytes_) / seconds;
  if (limit.rate <= 0 || rate <= slack * limit.rate) return {};
  return format_rate(rate) + " is above the limit of " + format_rate(limit.rate) + " (" + limit.source +
         "): the measurement is wrong";
}

}  // namespace waywiser
