#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waywiser/comm/schedule.hpp"
#include "waywiser/sim/rank_routes.hpp"
#include "waywiser/sim/trace.hpp"

namespace waywiser::sim {

constexpr std::size_t most_steps = 50'000'000;  // of all ranks together: 2 GB

// Rounds omitted from all ranks' schedules after round `last`, because they equal the `kept` rounds before: each takes
// the average time of the last half of these.
struct Cut {
  std::uint32_t last = 0, kept = 0, dropped = 0;
  bool operator==(const Cut&) const = default;
};

// Rounds are equal if they have equally many messages of each kind, whose lengths differ by at most one element. Keeps
// only the first `most` of consecutive equal rounds. Schedules without such rounds stay unchanged.
std::vector<Cut> cut_repetition(Schedule& schedule, std::uint32_t most);

// Costs of a schedule in addition to its messages.
struct StepCosts {
  Bytes element = 4;
  BytesPerSecond copy_rate = 0, reduce_rate = 0;  // of local memory; 0: no time
  bool overlaps = false;                          // a reduction goes on while its bytes arrive, else after it
  double weight = 1;                              // bytes on the hops for a byte of a message
  BytesPerSecond most = no_cap;                   // of each message
  Seconds later = 0, later_between = 0;           // added to the latency of each route, within nodes and between
  std::vector<Cut> cuts{};
};

// A part of an operation, which has its own schedules and its own routes between the same ranks. All parts run at once.
struct SchedulePart {
  const RankRoutes& routes;
  std::function<Schedule(int)> schedule_of;  // of one rank
};

// One of the ways between which "nccl" has chosen.
struct NcclTried {
  std::string algorithm, protocol;
  Seconds seconds = 0;
  Seconds reckoned = 0;  // by NCCL's latencies, which decide
  std::string why_not;
};

struct Ran {
  Seconds seconds = 0;
  Seconds unreckoned = 0;  // how much of it NCCL leaves out when it chooses; negative: it reckons more
  std::uint64_t messages = 0;
  std::uint32_t rounds = 0, rounds_run = 0;
  double bytes = 0;                 // over all messages that were run
  std::string algorithm, protocol;  // what "nccl" has chosen
  std::vector<NcclTried> tried;     // and between what
};

// First in, first out. Mostly short: it takes memory only once something is in it.
template <typename Item>
class Line {
 public:
  bool empty() const noexcept { return first_ == items_.size(); }
  const Item& front() const { return items_[first_]; }
  void push(Item item) { items_.push_back(std::move(item)); }
  void pop() {
    ++first_;
    if (first_ < kept && !empty()) return;
    items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

 private:
  static constexpr std::size_t kept = 64;
  std::vector<Item> items_;
  std::size_t first_ = 0;
};

// Runs the schedules of all ranks, unchanged, on the hops of a world. A message starts when both its ranks have reached
// it, as in comm's executor; a rank continues when all steps of its round are over. The run ends when the last rank's
// last step is over, whatever else happens in the world.
class ScheduleRun : private Listener {
 public:
  // `schedule_of` makes the schedule of one rank; only a short form is kept. Throws unavailable if that takes too much
  // memory.
  ScheduleRun(World& world, const RankRoutes& routes, int ranks, const std::function<Schedule(int)>& schedule_of,
              const StepCosts& costs, Trace* trace = nullptr);
  ScheduleRun(World& world, const std::vector<SchedulePart>& parts, int ranks, const StepCosts& costs,
              Trace* trace = nullptr);
  Ran run();
  // Begins, and begins again whenever it has ended, as long as another run in the same world goes on.
  void repeat();

 private:
  struct Op {
    StepKind kind;
    std::int32_t peer;
    std::uint32_t round;
    std::uint32_t channel;
    Bytes bytes;
  };
  struct Rank {
    std::vector<Op> ops;
    std::size_t next = 0;
    std::uint32_t running = 0;
    std::uint32_t round = 0;
    Seconds round_began = 0;
  };
  // From one rank to another: the k-th send matches the k-th receive.
  struct Channel {
    std::int32_t from, to;
    TimedRoute route;
    Line<Bytes> sends;
    std::uint32_t receives = 0;
    bool reduces = false;
    Line<std::pair<Bytes, Seconds>> moving;  // in the order of their starts
  };

  void wake(std::uint64_t token) override;
  void keep(std::size_t part, int rank, const Schedule& schedule);
  std::uint32_t channel(std::int32_t from, std::int32_t to);
  void begin();
  void enter(std::size_t rank);
  void post(std::size_t rank, const Op& op);
  void meet(std::uint32_t channel);
  void finish(std::size_t rank);
  void local(std::size_t rank, Seconds seconds);
  void note(std::size_t rank, const std::string& what, Seconds begin, Bytes bytes);

  std::string row(std::size_t rank) const;
  int rank_of(std::size_t number) const;

  World& world_;
  std::vector<const RankRoutes*> routes_;  // of each part
  int ranks_of_part_;
  StepCosts costs_;
  Trace* trace_;
  std::vector<Rank> ranks_;  // of the first part, then of the second one, ...
  std::vector<Channel> channels_;
  std::unordered_map<std::uint64_t, std::uint32_t> channel_of_;
  std::vector<Seconds> round_over_;  // when the last rank left it
  std::size_t steps_ = 0;
  std::size_t left_ = 0;  // ranks that have not ended
  bool repeats_ = false;
  Ran ran_;
};

}  // namespace waywiser::sim
