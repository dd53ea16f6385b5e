#include "waywiser/halo/contest.hpp"

#include <array>

#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

constexpr TurnLength exchanges{.aim = 500e-6, .most_repetitions = 100, .looks = 2};
constexpr std::uint64_t seed = 1;  // the same at all ranks

}  // namespace

HaloContest::HaloContest(Group& group, Seconds begun) : Contest(exchanges, seed), group_(group), begun_(begun) {}

void HaloContest::enter(std::unique_ptr<HaloRun> run) {
  runs_.push_back(std::move(run));
  Contest::enter();
}

void HaloContest::run(Seconds until, int least, int most) {
  Contest::run({.least = least, .most = most, .precision = 0, .share = until - took_, .hopeless = 0},
               [] { return true; });
}

std::vector<Sample> HaloContest::take(std::size_t which, int repetitions) {
  group_.barrier();
  const Seconds first = now_seconds();
  for (int i = 0; i < repetitions; ++i) {
    runs_[which]->start(nullptr);
    runs_[which]->finish();
  }
  const Seconds last = now_seconds();
  std::array<Seconds, 2> times = {(last - first) / repetitions, last - begun_};
  group_.all_reduce(std::span<const Seconds>(times), std::span(times), ReduceOp::max);
  took_ = times[1];
  return {{.seconds = times[0]}};
}

}  // namespace waywiser
