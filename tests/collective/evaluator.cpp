#include "tests/collective/evaluator.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>

#include "waywiser/comm/reduce.hpp"

namespace waywiser {
namespace {

bool sends(const Step& step) { return step.kind == StepKind::send; }
bool receives(const Step& step) { return step.kind == StepKind::receive || step.kind == StepKind::receive_reduce; }

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

  std::byte* at(std::size_t rank, const Block& block) {
    return arrays_[rank].bytes.data() + position(rank, block) * bytes_of(terms_.type);
  }

  void check(std::size_t rank) {
    const Schedule& schedule = schedules_[rank];
    std::uint64_t messages = 0, elements = 0, worked = 0;
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      const Step& step = schedule.steps[i];
      if (i > 0 && step.round < schedule.steps[i - 1].round) fail(rank, "rounds do not ascend");
      if (step.destination.count + step.source.count == 0) fail(rank, "a step without elements");
      for (const Block& block : {step.destination, step.source}) check_bounds(rank, block);
      if (!sends(step) && step.destination.area == Area::input) fail(rank, "writes its input");
      if (!sends(step) && step.kind != StepKind::receive) worked += step.destination.count;
      if (sends(step)) {
        ++messages;
        elements += step.source.count;
      } else if (!receives(step) && step.destination.count != step.source.count) {
        fail(rank, "copies between blocks of different size");
      }
    }
    for (std::size_t first = 0; first < schedule.steps.size();) first = check_round(rank, first);
    result_.messages = std::max(result_.messages, messages);
    result_.elements = std::max(result_.elements, elements);
    result_.worked = std::max(result_.worked, worked);
  }

  void check_bounds(std::size_t rank, const Block& block) {
    const Schedule& schedule = schedules_[rank];
    const std::size_t size = block.area == Area::input    ? schedule.input_count
                             : block.area == Area::output ? schedule.output_count
                                                          : schedule.scratch_count;
    if (block.count > size || block.offset > size - block.count) fail(rank, "a block outside of its buffer");
  }

  // What one step of a round writes, no other one touches. Returns the first step of the next round.
  std::size_t check_round(std::size_t rank, std::size_t first) {
    const std::vector<Step>& steps = schedules_[rank].steps;
    std::vector<Access> accesses;
    std::size_t i = first;
    for (; i < steps.size() && steps[i].round == steps[first].round; ++i) {
      const Step& step = steps[i];
      const std::size_t to = position(rank, step.destination), from = position(rank, step.source);
      if (step.kind == StepKind::copy && to == from) continue;  // in place: nothing to do
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
        if ((sends(steps[i]) || receives(steps[i])) && (peer < 0 || peer >= static_cast<int>(schedules_.size())))
          return fail(rank, "a peer that does not exist");
        if (sends(steps[i])) sent[{self, peer}].push_back({rank, i});
        if (receives(steps[i])) received[{peer, self}].push_back({rank, i});
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
    if (schedules_[from.rank].steps[from.step].source.count != schedules_[to.rank].steps[to.step].destination.count)
      fail(to.rank, "receives another count than is sent");
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

  // One step of each rank that has one, in a drawn order. False: nothing can go on.
  bool advance() {
    std::vector<std::size_t> order(schedules_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::shuffle(order, generator_);
    bool moved = false;
    for (const std::size_t rank : order) moved = advance(rank) || moved;
    return moved;
  }

  bool advance(std::size_t rank) {
    for (const std::size_t index : ranks_[rank].pending) {
      const Step& step = schedules_[rank].steps[index];
      if (!sends(step) && !receives(step)) {
        local(rank, step);
        end_step(rank, index);
        return true;
      }
      const Spot partner = ranks_[rank].partners[index];
      if (!std::ranges::count(ranks_[partner.rank].pending, partner.step)) continue;
      if (sends(step))
        transfer({rank, index}, partner);
      else
        transfer(partner, {rank, index});
      return true;
    }
    return false;
  }

  void local(std::size_t rank, const Step& step) {
    if (arrays_[rank].bytes.empty()) return;
    if (step.kind == StepKind::copy)
      std::memmove(at(rank, step.destination), at(rank, step.source), step.source.count * bytes_of(terms_.type));
    else
      reduce(terms_.type, terms_.op, at(rank, step.destination), at(rank, step.source), step.source.count);
  }

  void transfer(Spot from, Spot to) {
    const Step& sent = schedules_[from.rank].steps[from.step];
    const Step& received = schedules_[to.rank].steps[to.step];
    if (!arrays_[from.rank].bytes.empty()) {
      const std::byte* data = at(from.rank, sent.source);
      if (received.kind == StepKind::receive)
        std::memcpy(at(to.rank, received.destination), data, sent.source.count * bytes_of(terms_.type));
      else
        reduce(terms_.type, terms_.op, at(to.rank, received.destination), data, sent.source.count);
    }
    const std::uint64_t end = std::max(ranks_[from.rank].began, ranks_[to.rank].began) + 1;
    for (const Spot& place : {from, to}) {
      ranks_[place.rank].ends = std::max(ranks_[place.rank].ends, end);
      end_step(place.rank, place.step);
    }
  }

  void end_step(std::size_t rank, std::size_t index) {
    std::erase(ranks_[rank].pending, index);
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
