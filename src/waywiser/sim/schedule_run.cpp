#include "waywiser/sim/schedule_run.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser::sim {
namespace {

constexpr std::uint64_t local_step = std::uint64_t{1} << 63;
constexpr std::size_t most_channels = std::size_t{1} << 23;

// The data of a put travel with its signal.
std::vector<const Step*> puts_of(const Schedule& schedule) {
  const bool puts = std::ranges::any_of(schedule.steps, [](const Step& step) { return step.kind == StepKind::put; });
  return puts ? puts_of_signals(schedule) : std::vector<const Step*>();
}

Bytes bytes_of(const Schedule& schedule, const Block& block, Bytes element) {
  return block.count * (block.area == Area::array ? waywiser::bytes_of(schedule.arrays[block.array].type) : element);
}

struct ScheduleShape {
  int sends = 0, plain = 0, reducing = 0, local = 0;
  std::size_t count = 0;

  void add(const Step& step) {
    sends += waywiser::sends(step.kind);
    plain += step.kind == StepKind::receive || step.kind == StepKind::wait;
    reducing += step.kind == StepKind::receive_reduce;
    local += step.peer < 0;
    count = std::max(count, receives(step.kind) ? step.destination.count : step.source.count);
  }
  bool like(const ScheduleShape& other) const {
    const std::size_t apart = count > other.count ? count - other.count : other.count - count;
    return sends == other.sends && plain == other.plain && reducing == other.reducing && local == other.local &&
           apart <= 1;
  }
};

}  // namespace

std::vector<Cut> cut_repetition(Schedule& schedule, std::uint32_t most) {
  std::vector<ScheduleShape> rounds;
  for (const Step& step : schedule.steps) {
    rounds.resize(std::max<std::size_t>(rounds.size(), step.round + 1));
    rounds[step.round].add(step);
  }
  std::vector<Cut> cuts;
  std::vector<bool> dropped(rounds.size());
  const auto end = static_cast<std::uint32_t>(rounds.size());
  for (std::uint32_t first = 0, next = 0; first < end; first = next) {
    for (next = first + 1; next < end && rounds[next].like(rounds[first]); ++next) dropped[next] = next - first >= most;
    if (next - first > most) cuts.push_back({first + most - 1, most, next - first - most});
  }
  std::erase_if(schedule.steps, [&](const Step& step) { return dropped[step.round]; });
  return cuts;
}

ScheduleRun::ScheduleRun(World& world, const RankRoutes& routes, int ranks,
                         const std::function<Schedule(int)>& schedule_of, const StepCosts& costs, Trace* trace)
    : ScheduleRun(world, {{routes, schedule_of}}, ranks, costs, trace) {}

ScheduleRun::ScheduleRun(World& world, const std::vector<SchedulePart>& parts, int ranks, const StepCosts& costs,
                         Trace* trace)
    : world_(world),
      ranks_of_part_(ranks),
      costs_(costs),
      trace_(trace),
      ranks_(static_cast<std::size_t>(ranks) * parts.size()) {
  for (const SchedulePart& part : parts) {
    routes_.push_back(&part.routes);
    for (int rank = 0; rank < ranks; ++rank) keep(routes_.size() - 1, rank, part.schedule_of(rank));
  }
}

// Peers are ranks of the same part.
void ScheduleRun::keep(std::size_t part, int rank, const Schedule& schedule) {
  const int first = static_cast<int>(part) * ranks_of_part_;
  Rank& mine = ranks_[static_cast<std::size_t>(first + rank)];
  steps_ += schedule.steps.size();
  if (steps_ > most_steps)
    throw Error(ErrorKind::unavailable,
                std::string(schedule.algorithm) + ": more than 50 million steps, too many to run");
  mine.ops.reserve(schedule.steps.size());
  const std::vector<const Step*> puts = puts_of(schedule);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    ran_.rounds = std::max(ran_.rounds, step.round + 1);
    const Step* put = puts.empty() ? nullptr : puts[i];
    const Block& block = receives(step.kind) ? step.destination : put != nullptr ? put->source : step.source;
    Op op{step.kind, step.peer, step.round, 0, bytes_of(schedule, block, costs_.element)};
    if (sends(step.kind)) op.channel = channel(first + rank, first + step.peer);
    if (receives(step.kind)) op.channel = channel(first + step.peer, first + rank);
    mine.ops.push_back(op);
  }
}

std::uint32_t ScheduleRun::channel(std::int32_t from, std::int32_t to) {
  const auto key = static_cast<std::uint64_t>(static_cast<std::uint32_t>(from)) << 32 | static_cast<std::uint32_t>(to);
  const auto [known, fresh] = channel_of_.emplace(key, static_cast<std::uint32_t>(channels_.size()));
  if (!fresh) return known->second;
  if (channels_.size() >= most_channels)
    throw Error(ErrorKind::invalid_input,
                "the schedule has more than 8 million pairs of ranks that talk to each other");
  const RankRoutes& routes = *routes_[static_cast<std::size_t>(from / ranks_of_part_)];
  const int sends = from % ranks_of_part_, receives = to % ranks_of_part_;
  TimedRoute route = routes.route(sends, receives);
  for (Use& use : route.uses) use.weight *= costs_.weight;
  route.cap /= costs_.weight;
  const int a = routes.node_of(sends), b = routes.node_of(receives);
  const bool within = a == b || world_.share_domain(a, b);
  route.latency = std::max(0.0, route.latency + (within ? costs_.later : costs_.later_between));
  channels_.push_back({from, to, std::move(route), {}, 0, false, {}});
  return known->second;
}

void ScheduleRun::begin() {
  left_ = ranks_.size();
  for (Rank& rank : ranks_) {
    rank.next = 0;
    if (rank.ops.empty()) --left_;
  }
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) enter(rank);
}

void ScheduleRun::repeat() {
  round_over_.assign(ran_.rounds, 0);
  repeats_ = ran_.rounds > 0;
  begin();
}

Ran ScheduleRun::run() {
  round_over_.assign(ran_.rounds, 0);
  begin();
  world_.engine().run([this] { return left_ > 0; });
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
    if (ranks_[rank].next < ranks_[rank].ops.size() || ranks_[rank].running != 0)
      throw Error(ErrorKind::invalid_input,
                  "the schedule never ends: " + row(rank) + " waits in round " + std::to_string(ranks_[rank].round));
  for (const Seconds over : round_over_) ran_.seconds = std::max(ran_.seconds, over);
  std::uint32_t dropped = 0;
  for (const Cut& cut : costs_.cuts) {
    const std::uint32_t half = cut.kept / 2;
    ran_.seconds += (round_over_[cut.last] - round_over_[cut.last - half]) / half * cut.dropped;
    ran_.rounds = std::max(ran_.rounds, cut.last + cut.dropped + 1);
    dropped += cut.dropped;
  }
  ran_.rounds_run = ran_.rounds - dropped;
  return ran_;
}

void ScheduleRun::enter(std::size_t number) {
  Rank& rank = ranks_[number];
  if (rank.next >= rank.ops.size()) return;
  const std::size_t first = rank.next;
  rank.round = rank.ops[first].round;
  rank.round_began = world_.engine().now();
  while (rank.next < rank.ops.size() && rank.ops[rank.next].round == rank.round) {
    ++rank.next;
    ++rank.running;
  }
  const std::size_t last = rank.next;
  for (std::size_t i = first; i < last; ++i) post(number, rank.ops[i]);
}

void ScheduleRun::post(std::size_t number, const Op& op) {
  const auto bytes = static_cast<double>(op.bytes);
  if (op.kind == StepKind::put) return local(number, 0);
  if (is_local(op.kind) && op.kind != StepKind::reduce)
    return local(number, costs_.copy_rate > 0 ? bytes / costs_.copy_rate : 0);
  if (op.kind == StepKind::reduce) return local(number, costs_.reduce_rate > 0 ? bytes / costs_.reduce_rate : 0);
  Channel& pair = channels_[op.channel];
  if (sends(op.kind)) {
    pair.sends.push(op.bytes);
  } else {
    ++pair.receives;
    pair.reduces = op.kind == StepKind::receive_reduce;
  }
  meet(op.channel);
}

void ScheduleRun::meet(std::uint32_t number) {
  Channel& pair = channels_[number];
  while (pair.receives > 0 && !pair.sends.empty()) {
    const Bytes bytes = pair.sends.front();
    pair.sends.pop();
    --pair.receives;
    pair.moving.push({bytes, world_.engine().now()});
    ++ran_.messages;
    ran_.bytes += static_cast<double>(bytes);
    const BytesPerSecond adds = pair.reduces && costs_.reduce_rate > 0 ? costs_.reduce_rate : no_cap;
    const Seconds after = costs_.overlaps ? 0 : static_cast<double>(bytes) / adds;
    world_.engine().transfer(pair.route.uses, std::min({costs_.most, pair.route.cap, costs_.overlaps ? adds : no_cap}),
                             static_cast<double>(bytes), pair.route.latency + after, *this, number);
  }
}

void ScheduleRun::local(std::size_t rank, Seconds seconds) { world_.engine().after(seconds, *this, local_step | rank); }

void ScheduleRun::wake(std::uint64_t token) {
  if ((token & local_step) != 0) {
    const auto rank = static_cast<std::size_t>(token & ~local_step);
    if (trace_ != nullptr) note(rank, "local", ranks_[rank].round_began, 0);
    return finish(rank);
  }
  Channel& pair = channels_[token];
  const auto [bytes, began] = pair.moving.front();
  pair.moving.pop();
  const auto from = static_cast<std::size_t>(pair.from), to = static_cast<std::size_t>(pair.to);
  if (trace_ != nullptr) note(from, "to rank " + std::to_string(rank_of(to)), began, bytes);
  finish(from);
  finish(to);
}

void ScheduleRun::finish(std::size_t number) {
  Rank& rank = ranks_[number];
  if (--rank.running != 0) return;
  round_over_[rank.round] = std::max(round_over_[rank.round], world_.engine().now());
  if (rank.next >= rank.ops.size() && --left_ == 0 && repeats_) return begin();
  enter(number);
}

void ScheduleRun::note(std::size_t rank, const std::string& what, Seconds begin, Bytes bytes) {
  if (trace_->spans.size() >= most_spans) return;
  trace_->spans.push_back({row(rank), what, begin, world_.engine().now(), bytes});
}

// "rank 3"; with several parts "rank 3, part 1": the rank that has this device in the first part.
std::string ScheduleRun::row(std::size_t rank) const {
  const std::string name = "rank " + std::to_string(rank_of(rank));
  return routes_.size() > 1 ? name + ", part " + std::to_string(rank / static_cast<std::size_t>(ranks_of_part_)) : name;
}

int ScheduleRun::rank_of(std::size_t number) const {
  const int rank = static_cast<int>(number) % ranks_of_part_;
  const RankRoutes &first = *routes_.front(), &own = *routes_[number / static_cast<std::size_t>(ranks_of_part_)];
  const int node = rank - rank % own.ranks_of_node();
  for (int found = node; found < node + own.ranks_of_node(); ++found)
    if (first.device(found) == own.device(rank)) return found;
  return rank;  // of another group
}

}  // namespace waywiser::sim
