#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "waywiser/comm/schedule.hpp"
#include "waywiser/sim/rank_routes.hpp"
#include "waywiser/sim/trace.hpp"

namespace waywiser::sim {

// Rounds that were left out of all ranks' schedules after round `last`, because they are like the `kept` ones up to it:
// each takes what the last half of these took a round.
struct Cut {
  std::uint32_t last = 0, kept = 0, dropped = 0;
};

// Keeps of each run of rounds that are alike (as many messages of each kind, of lengths that differ by one element at
// most) only the first `most`. Nothing is cut from a schedule without such runs.
std::vector<Cut> cut_repetition(Schedule& schedule, std::uint32_t most);

// What a schedule costs beside its messages.
struct StepCosts {
  Bytes element = 4;
  BytesPerSecond copy_rate = 0, reduce_rate = 0;  // of local memory; 0: no time
  std::vector<Cut> cuts;
};

struct Ran {
  Seconds seconds = 0;
  std::uint64_t messages = 0;
  std::uint32_t rounds = 0, rounds_run = 0;
  double bytes = 0;  // over all messages that were run
};

// Runs the schedules of all ranks, unchanged, on the hops of a world. A message starts when both its ranks have come to
// it, as comm's executor does; a rank goes on when all steps of its round are over. It has run when the last rank's
// last step is over, whatever else goes on in the world.
class ScheduleRun : private Listener {
 public:
  // `schedule_of` makes the schedule of one rank; it is kept in short form only.
  // Throws unavailable where that takes too much memory.
  ScheduleRun(World& world, const RankRoutes& roads, int ranks, const std::function<Schedule(int)>& schedule_of,
              const StepCosts& costs, Trace* trace = nullptr);
  Ran run();

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
  // From one rank to another: the k-th send meets the k-th receive.
  struct Channel {
    std::int32_t from, to;
    TimedRoute road;
    std::deque<Bytes> sends;
    std::uint32_t receives = 0;
    bool reduces = false;
    std::deque<std::pair<Bytes, Seconds>> moving;  // in the order of their starts
  };

  void wake(std::uint64_t token) override;
  void keep(int rank, const Schedule& schedule);
  std::uint32_t channel(std::int32_t from, std::int32_t to);
  void enter(std::size_t rank);
  void post(std::size_t rank, const Op& op);
  void meet(std::uint32_t channel);
  void finish(std::size_t rank);
  void local(std::size_t rank, Seconds seconds);
  void note(std::size_t rank, const std::string& what, Seconds begin, Bytes bytes);

  World& world_;
  const RankRoutes& roads_;
  StepCosts costs_;
  Trace* trace_;
  std::vector<Rank> ranks_;
  std::vector<Channel> channels_;
  std::unordered_map<std::uint64_t, std::uint32_t> channel_of_;
  std::vector<Seconds> round_over_;  // when the last rank left it
  std::size_t steps_ = 0;
  Ran ran_;
};

}  // namespace waywiser::sim
