#include "waywiser/bench/bench_rank.hpp"

#include <array>
#include <optional>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

constexpr int most_calls_to_warm_up = most_calls_in_graph;
constexpr std::uint64_t longest_text = 1 << 20;

// For the calls of one slice; those that conduct take their own way.
class ForcedWay {
 public:
  ForcedWay(Group& group, const BenchRequest& request)
      : group_(group), mailboxes_(session_of(group).engine().mailboxes()), usual_(mailboxes_.sizes()) {
    const auto sizes = request.input == "host" ? only_host_way(request.way, request.bytes) : std::nullopt;
    if (sizes)
      mailboxes_.use(*sizes);
    else
      group_.set_algorithm(request.way);
  }
  ForcedWay(const ForcedWay&) = delete;
  ForcedWay& operator=(const ForcedWay&) = delete;
  ~ForcedWay() {
    mailboxes_.use(usual_);
    group_.set_algorithm("");
  }

 private:
  Group& group_;
  MailboxMessages& mailboxes_;
  const HostMessageSizes usual_;
};

std::string case_of(const BenchRequest& request) {
  return request.operation + ' ' + request.input + ' ' + request.output + ' ' + std::to_string(request.bytes) + ' ' +
         std::to_string(request.window) + ' ' + std::to_string(request.compute) + ' ' +
         std::to_string(static_cast<int>(request.mode)) + ' ' + request.way;
}

}  // namespace

std::unique_ptr<Exercise> make_exercise(const Bench& bench, const BenchRequest& request) {
  if ((request.input != "host" || request.output != "host") && bench.platform.gpu_count() == 0)
    throw Error(ErrorKind::unavailable, "no GPU here: --backend virtual_gpu takes virtual ones");
  if (auto made = make_kernel_exercise(bench, request)) return made;
  if (auto made = make_message_exercise(bench, request)) return made;
  if (auto made = make_one_sided_exercise(bench, request)) return made;
  if (auto made = make_collective_exercise(bench, request)) return made;
  throw Error(ErrorKind::invalid_input, "there is no benchmark " + quoted(request.operation, 40));
}

BenchRank::BenchRank(const JoinOptions& options) : platform_(options.platform), group_(Group::join(options)) {}

std::vector<Seconds> BenchRank::run(const BenchRequest& request) {
  if (case_ != case_of(request)) {
    exercise_.reset();
    exercise_ = make_exercise({group_, *platform_}, request);
    case_ = case_of(request);
  }
  std::optional<ForcedWay> way;  // a kernel takes its own
  if (request.mode != CallMode::kernel) way.emplace(group_, request);
  std::vector<Seconds> times;
  times.reserve(static_cast<std::size_t>(request.samples));
  exercise_->prepare(request.seed);
  group_.barrier();
  exercise_->run(std::min(request.calls, most_calls_to_warm_up));
  for (int sample = 0; sample < request.samples; ++sample) {
    exercise_->prepare(request.seed + 1 + static_cast<unsigned>(sample));
    group_.barrier();
    const Seconds start = now_seconds();
    exercise_->run(request.calls);
    times.push_back((now_seconds() - start) / request.calls);
    exercise_->check();
  }
  group_.barrier();
  return times;
}

std::string BenchRank::share(const std::string& text) {
  std::array<std::int64_t, 1> length{static_cast<std::int64_t>(text.size())};
  group_.broadcast(std::span(length), 0);
  if (length[0] < 0 || static_cast<std::uint64_t>(length[0]) > longest_text)
    throw Error(ErrorKind::invalid_input, "rank 0 said " + std::to_string(length[0]) + " bytes");
  std::string shared = text;
  shared.resize(static_cast<std::size_t>(length[0]));
  group_.broadcast(std::as_writable_bytes(std::span(shared)), 0);
  return shared;
}

std::vector<std::vector<double>> BenchRank::collect(const std::vector<double>& values) {
  const auto ranks = static_cast<std::size_t>(rank() == 0 ? size() : 0);
  std::vector<double> all(ranks * values.size());
  group_.gather(std::span<const double>(values), std::span(all), 0);
  std::vector<std::vector<double>> parts;
  for (std::size_t i = 0; i < ranks; ++i)
    parts.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(i * values.size()),
                       all.begin() + static_cast<std::ptrdiff_t>((i + 1) * values.size()));
  return parts;
}

}  // namespace waywiser
