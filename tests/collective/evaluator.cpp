#include "tests/collective/evaluator.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "waywiser/comm/reduce.hpp"
#include "waywiser/comm/schedule_check.hpp"

namespace waywiser {
namespace {

struct Spot {
  std::size_t rank = 0, step = 0;
};

struct Access {
  std::size_t first = 0, end = 0;
  bool write = false;
};

class Evaluator {
 public:
  Evaluator(const std::vector<Schedule>& schedules, std::vector<PlainArrays>& arrays, const EvaluationTerms& terms)
      : schedules_(schedules), arrays_(arrays), terms_(terms), generator_(terms.seed), ranks_(schedules.size()) {}

  Evaluation run() {
    result_.finished.assign(schedules_.size(), false);
    for (std::size_t rank = 0; rank < schedules_.size(); ++rank) check(rank);
    if (!result_.wrong.empty()) return result_;
    match();
    if (!result_.wrong.empty()) return result_;
    for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
      if (!stopped(rank)) begin_round(rank);
    while (advance()) {
    }
    for (std::size_t rank = 0; rank < schedules_.size(); ++rank)
      if (!result_.finished[rank]) fail(rank, "never ends: deadlock in round " + std::to_string(ranks_[rank].round));
    return result_;
  }

 private:
  struct Rank {
    std::vector<std::size_t> pending;  // steps of the current round
    std::size_t next = 0;              // the first step of the next one
    std::uint32_t round = 0;
    std::uint64_t began = 0, ends = 0;
    std::vector<Spot> partners;
    std::vector<const Step*> puts;  // of each signal
    std::vector<bool> over;         // steps
    std::map<const Step*, std::vector<std::byte>> on_the_way;
  };

  bool stopped(std::size_t rank) const { return static_cast<int>(rank) == terms_.stopped_rank; }

  void fail(std::size_t rank, const std::string& what) {
    if (result_.wrong.empty()) result_.wrong = "rank " + std::to_string(rank) + ": " + what;
  }

  std::size_t position(std::size_t rank, const Block& block) const {
    const PlainArrays& arrays = arrays_[rank];
    const std::size_t base = block.area == Area::input    ? arrays.input_at
                             : block.area == Area::output ? arrays.output_at
                                                          : arrays.scratch_at;
    return base + block.offset;
  }

  DataType type_of(std::size_t rank, const Block& block) const {
    return block.area == Area::array ? schedules_[rank].arrays[block.array].type : terms_.type;
  }

  // f(bytes of a run, elements) for each run of a block.
  template <typename Function>
  void each_run(std::size_t rank, const Block& block, Function f) {
    const std::size_t size = bytes_of(type_of(rank, block));
    std::vector<std::byte>& bytes = block.area == Area::array ? arrays_[rank].arrays[block.array] : arrays_[rank].bytes;
    const std::size_t base = block.area == Area::array ? 0 : position(rank, block) - block.offset;
    for_each_run(schedules_[rank], block,
                 [&](std::size_t first, std::size_t count) { f(&bytes.at((base + first) * size), count); });
  }

  std::vector<std::byte> read(std::size_t rank, const Block& block) {
    std::vector<std::byte> data;
    const std::size_t size = bytes_of(type_of(rank, block));
    each_run(rank, block, [&](std::byte* run, std::size_t count) { data.insert(data.end(), run, run + count * size); });
    return data;
  }

  void write(std::size_t rank, const Block& block, const std::vector<std::byte>& data, bool reduces) {
    const DataType type = type_of(rank, block);
    std::size_t next = 0;
    each_run(rank, block, [&](std::byte* run, std::size_t count) {
      if (reduces)
        reduce(type, terms_.op, run, data.data() + next, count);
      else
        std::memcpy(run, data.data() + next, count * bytes_of(type));
      next += count * bytes_of(type);
    });
  }

  bool has_data(std::size_t rank) const { return !arrays_[rank].bytes.empty() || !arrays_[rank].arrays.empty(); }

  void check(std::size_t rank) {
    const Schedule& schedule = schedules_[rank];
    std::uint64_t sent = 0, sent_elements = 0, received = 0, received_elements = 0, worked = 0;
    if (const auto why = why_invalid(schedule)) return fail(rank, *why);
    ranks_[rank].puts = puts_of_signals(schedule);
    ranks_[rank].over.resize(schedule.steps.size());
    for (const Step& step : schedule.steps) {
      const bool works = step.kind == StepKind::receive_reduce || is_local(step.kind);
      if (works) worked += step.destination.count;
      if (sends(step.kind)) ++sent;
      if (sends(step.kind) || step.kind == StepKind::put) sent_elements += step.source.count;
      if (receives(step.kind)) ++received;
      if (receives(step.kind)) received_elements += step.destination.count;
    }
    for (std::size_t first = 0; first < schedule.steps.size();) first = check_round(rank, first);
    result_.messages = std::max({result_.messages, sent, received});
    result_.elements = std::max({result_.elements, sent_elements, received_elements});
    result_.passed_on = std::max(result_.passed_on, std::min(sent_elements, received_elements));
    result_.worked = std::max(result_.worked, worked);
  }

  // Checks that no other step of the round touches the bytes that one step writes, also if input and output are the
  // same array. Returns the first step of the next round.
  std::size_t check_round(std::size_t rank, std::size_t first) {
    const std::vector<Step>& steps = schedules_[rank].steps;
    std::vector<Access> accesses;
    std::size_t i = first;
    for (; i < steps.size() && steps[i].round == steps[first].round; ++i) {
      const Step& step = steps[i];
      if (step.destination.layout + step.source.layout != 0) continue;
      const std::size_t to = position(rank, step.destination), from = position(rank, step.source);
      if (step.kind == StepKind::copy && to == from) continue;  // in place: nothing to do
      if (step.destination.area == Area::array || step.source.area == Area::array) continue;
      if (step.destination.count > 0) accesses.push_back({to, to + step.destination.count, true});
      if (step.source.count > 0) accesses.push_back({from, from + step.source.count, false});
    }
    std::ranges::sort(accesses, {}, &Access::first);
    std::size_t written = 0, read = 0;  // up to here
    for (const Access& access : accesses) {
      if (access.first < written || (access.write && access.first < read))
        fail(rank, "steps of round " + std::to_string(steps[first].round) + " touch the same elements");
      (access.write ? written : read) = std::max(access.write ? written : read, access.end);
    }
    return i;
  }

  void match() {
    std::map<std::pair<int, int>, std::vector<Spot>> sent, received;
    for (std::size_t rank = 0; rank < schedules_.size(); ++rank) {
      const std::vector<Step>& steps = schedules_[rank].steps;
      ranks_[rank].partners.resize(steps.size());
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const int self = static_cast<int>(rank), peer = steps[i].peer;
        if ((sends(steps[i].kind) || receives(steps[i].kind)) &&
            (peer < 0 || peer >= static_cast<int>(schedules_.size())))
          return fail(rank, "a peer that does not exist");
        if (sends(steps[i].kind)) sent[{self, peer}].push_back({rank, i});
        if (receives(steps[i].kind)) received[{peer, self}].push_back({rank, i});
      }
    }
    for (const auto& [pair, places] : sent)
      if (received[pair].size() != places.size()) return fail(places[0].rank, "sends that nobody receives");
    for (const auto& [pair, places] : received) {
      const std::vector<Spot>& from = sent[pair];
      if (from.size() != places.size()) return fail(places[0].rank, "receives what nobody sends");
      for (std::size_t k = 0; k < places.size(); ++k) join(from[k], places[k]);
    }
  }

  void join(Spot from, Spot to) {
    ranks_[from.rank].partners[from.step] = to;
    ranks_[to.rank].partners[to.step] = from;
    const Step& sent = schedules_[from.rank].steps[from.step];
    const Step& received = schedules_[to.rank].steps[to.step];
    const Step* put = ranks_[from.rank].puts[from.step];
    if ((sent.kind == StepKind::signal) != (received.kind == StepKind::wait))
      return fail(to.rank, "receives what is put, or waits for what is sent");
    const Block none, &source = sent.kind == StepKind::send ? sent.source : put != nullptr ? put->source : none;
    if (source.count != received.destination.count) fail(to.rank, "receives another count than is sent");
    if (source.count != 0 && type_of(from.rank, source) != type_of(to.rank, received.destination))
      fail(to.rank, "receives another type than is sent");
  }

  void begin_round(std::size_t rank) {
    Rank& state = ranks_[rank];
    const std::vector<Step>& steps = schedules_[rank].steps;
    if (state.next == steps.size()) {
      result_.finished[rank] = true;
      result_.steps = std::max(result_.steps, state.ends);
      return;
    }
    state.began = state.ends;
    state.round = steps[state.next].round;
    while (state.next < steps.size() && steps[state.next].round == state.round) state.pending.push_back(state.next++);
    std::ranges::shuffle(state.pending, generator_);
  }

  // Runs one step at each rank that can continue, in random order. False: no rank can.
  bool advance() {
    std::vector<std::size_t> order(schedules_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, generator_);
    bool moved = false;
    for (const std::size_t rank : order) moved = advance(rank) || moved;
    return moved;
  }

  bool advance(std::size_t rank) {
    for (const std::size_t index : ranks_[rank].pending)
      if (advance(rank, index)) return true;
    return false;
  }

  bool advance(std::size_t rank, std::size_t index) {
    const Step& step = schedules_[rank].steps[index];
    const Spot partner = ranks_[rank].partners[index];
    switch (step.kind) {
      case StepKind::send:
      case StepKind::receive:
      case StepKind::receive_reduce:
        if (!std::ranges::count(ranks_[partner.rank].pending, partner.step)) return false;
        step.kind == StepKind::send ? transfer({rank, index}, partner) : transfer(partner, {rank, index});
        return true;
      case StepKind::put:
        if (has_data(rank)) ranks_[rank].on_the_way[&step] = read(rank, step.source);
        break;
      case StepKind::signal: break;
      case StepKind::wait:
        if (!ranks_[partner.rank].over[partner.step]) return false;
        take(partner, {rank, index});
        break;
      default: local(rank, step);
    }
    end_step(rank, index);
    return true;
  }

  void take(Spot signal, Spot wait) {
    Rank& from = ranks_[signal.rank];
    ranks_[wait.rank].ends = std::max(ranks_[wait.rank].ends, std::max(from.began, ranks_[wait.rank].began) + 1);
    if (const auto put = from.on_the_way.find(from.puts[signal.step]); put != from.on_the_way.end())
      write(wait.rank, schedules_[wait.rank].steps[wait.step].destination, put->second, false);
  }

  void local(std::size_t rank, const Step& step) {
    if (!has_data(rank)) return;
    write(rank, step.destination, read(rank, step.source), step.kind == StepKind::reduce);
  }

  void transfer(Spot from, Spot to) {
    const Step& received = schedules_[to.rank].steps[to.step];
    if (has_data(from.rank))
      write(to.rank, received.destination, read(from.rank, schedules_[from.rank].steps[from.step].source),
            received.kind == StepKind::receive_reduce);
    const std::uint64_t end = std::max(ranks_[from.rank].began, ranks_[to.rank].began) + 1;
    for (const Spot& place : {from, to}) {
      ranks_[place.rank].ends = std::max(ranks_[place.rank].ends, end);
      end_step(place.rank, place.step);
    }
  }

  void end_step(std::size_t rank, std::size_t index) {
    std::erase(ranks_[rank].pending, index);
    ranks_[rank].over[index] = true;
    if (ranks_[rank].pending.empty()) begin_round(rank);
  }

  const std::vector<Schedule>& schedules_;
  std::vector<PlainArrays>& arrays_;
  EvaluationTerms terms_;
  std::mt19937_64 generator_;
  std::vector<Rank> ranks_;
  Evaluation result_;
};

}  // namespace

Evaluation evaluate(const std::vector<Schedule>& schedules, std::vector<PlainArrays>& arrays,
                    const EvaluationTerms& terms) {
  return Evaluator(schedules, arrays, terms).run();
}

}  // namespace waywiser
