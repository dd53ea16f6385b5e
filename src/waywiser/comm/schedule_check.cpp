#include "waywiser/comm/schedule_check.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "waywiser/comm/round_check.hpp"

namespace waywiser {
namespace {

std::string number_text(std::size_t number) { return std::to_string(number); }

// Checks one rank's schedule; keeps only the first error.
class ScheduleCheck {
 public:
  explicit ScheduleCheck(const Schedule& schedule) : schedule_(schedule) {}

  std::optional<std::string> run() {
    if (schedule_.rank < 0 || schedule_.rank >= schedule_.ranks) fail("it is for a rank that does not exist");
    for (const BlockLayout& layout : schedule_.layouts) check(layout);
    for (std::size_t i = 0; i < schedule_.steps.size() && !why_; ++i) {
      if (i > 0 && schedule_.steps[i].round < schedule_.steps[i - 1].round) fail("rounds do not ascend");
      check(schedule_.steps[i]);
    }
    check_puts();
    for (std::size_t first = 0; first < schedule_.steps.size() && !why_;) first = check_round(first);
    return why_;
  }

 private:
  void fail(const std::string& what) {
    if (!why_) why_ = what;
  }

  void check(const BlockLayout& layout) {
    std::size_t runs = 1, most = layout.run;
    bool too_many = layout.run == 0;
    for (const BlockLayout::Dimension& each : layout.box) {
      too_many = too_many || each.count == 0 || __builtin_mul_overflow(runs, each.count, &runs) ||
                 __builtin_mul_overflow(most, each.count, &most);
      std::size_t reach = 0;
      too_many = too_many || __builtin_mul_overflow(each.count, each.stride, &reach) || reach >> 61 != 0;
    }
    const bool far = std::ranges::any_of(layout.indices, [](std::size_t index) { return index >> 61 != 0; });
    if (too_many || far || most >> 62 != 0 || layout.indices.size() >> 32 != 0)
      fail("a layout of no elements, or of more than there can be");
  }

  std::size_t buffer_count(const Block& block) const {
    switch (block.area) {
      case Area::input: return schedule_.input_count;
      case Area::output: return schedule_.output_count;
      case Area::scratch: return schedule_.scratch_count;
      case Area::array: return schedule_.arrays[block.array].count;
    }
    return 0;
  }

  // Whether the block can be read at all.
  bool check(const Block& block) {
    if (block.count == 0) return true;
    if (block.area == Area::array && block.array >= schedule_.arrays.size())
      return fail("a block of array " + number_text(block.array) + ", of " + number_text(schedule_.arrays.size())),
             false;
    if (block.layout > schedule_.layouts.size())
      return fail("a block of layout " + number_text(block.layout) + ", of " + number_text(schedule_.layouts.size())),
             false;
    if (block.layout != 0) {
      const BlockLayout& layout = schedule_.layouts[block.layout - 1];
      if (layout.runs() * layout.run != block.count)
        return fail("a block of " + number_text(block.count) + " elements whose layout has " +
                    number_text(layout.runs() * layout.run)),
               false;
    }
    const std::size_t size = buffer_count(block);
    if (block.offset > size) return fail("a block outside of its buffer"), false;
    const auto check_run = [&](std::size_t first, std::size_t count) {
      if (count > size || first > size - count) fail("a block outside of its buffer");
    };
    const BlockLayout* layout = block.layout == 0 ? nullptr : &schedule_.layouts[block.layout - 1];
    if (layout != nullptr && layout->indices.empty())  // the last run of a box reaches farthest
      check_run(block.offset + layout->run_at(layout->runs() - 1), layout->run);
    else
      for_each_run(schedule_, block, check_run);
    return !why_;
  }

  bool is_landing(const Block& block) const {
    return block.area == Area::array && schedule_.arrays[block.array].use == ArrayUse::landing;
  }
  bool may_write(const Block& block) const {
    return block.area != Area::input &&
           (block.area != Area::array || schedule_.arrays[block.array].use != ArrayUse::given);
  }

  void check(const Step& step) {
    if (!check(step.destination) || !check(step.source)) return;
    const bool source = step.kind == StepKind::send || step.kind == StepKind::put || is_local(step.kind);
    const bool destination = receives(step.kind) || is_local(step.kind);
    if (!source && step.source.count != 0) return fail("a source in a step that has none");
    if (!destination && step.destination.count != 0) return fail("a destination in a step that has none");
    if (step.source.count + step.destination.count == 0 && step.kind != StepKind::signal && step.kind != StepKind::wait)
      return fail("a step without elements");
    if (destination && step.destination.count != 0 && !may_write(step.destination)) return fail("it writes its input");
    if (!is_local(step.kind) && (step.peer < 0 || step.peer >= schedule_.ranks || step.peer == schedule_.rank))
      return fail("a peer that does not exist");
    if (step.kind == StepKind::wait && step.destination.count != 0 &&
        (!is_landing(step.destination) || step.destination.layout != 0))
      return fail("a wait whose destination is no block of a landing array");
    if (is_local(step.kind)) check_local(step);
  }

  void check_local(const Step& step) {
    if (step.destination.count != step.source.count) return fail("it copies between blocks of different size");
    const auto type = [&](const Block& block) {
      return block.area == Area::array ? static_cast<int>(schedule_.arrays[block.array].type) : -1;
    };
    if (type(step.source) != type(step.destination)) return fail("it copies between arrays of two types");
    if (step.kind == StepKind::pack && step.destination.layout != 0) fail("it packs into elements that lie apart");
    if (step.kind == StepKind::unpack && step.source.layout != 0) fail("it unpacks elements that lie apart");
  }

  void check_puts() {
    std::map<int, std::uint32_t> open;  // by peer: the round of a put without a signal so far
    for (const Step& step : schedule_.steps) {
      if (why_) return;
      const auto put = open.find(step.peer);
      if (step.kind == StepKind::put && put != open.end())
        fail("two puts to rank " + std::to_string(step.peer) + " without a signal between them");
      if (step.kind == StepKind::put) open.emplace(step.peer, step.round);
      if (step.kind != StepKind::signal || put == open.end()) continue;
      if (put->second == step.round) fail("a put to rank " + std::to_string(step.peer) + " in the round of its signal");
      open.erase(put);
    }
    if (!open.empty()) fail("a put to rank " + std::to_string(open.begin()->first) + " without a signal");
  }

  // Data written by one step of a round must not be touched by another. Returns the first step of the next round.
  std::size_t check_round(std::size_t first) {
    const std::vector<Step>& steps = schedule_.steps;
    std::vector<BlockAccess> accesses;
    std::size_t i = first;
    for (; i < steps.size() && steps[i].round == steps[first].round; ++i) {
      if (steps[i].kind == StepKind::copy && steps[i].destination == steps[i].source) continue;
      accesses.push_back({&steps[i].destination, true});
      accesses.push_back({&steps[i].source, false});
    }
    if (touch_the_same(schedule_, accesses))
      fail("steps of round " + std::to_string(steps[first].round) + " touch the same elements");
    return i;
  }

  const Schedule& schedule_;
  std::optional<std::string> why_;
};

void add(MessageSummary& summary, std::size_t bytes, std::uint64_t mark) {
  ++summary.messages;
  summary.bytes += bytes;
  summary.digest = (summary.digest ^ bytes ^ mark << 56) * 0x9e3779b97f4a7c15u;
  summary.digest ^= summary.digest >> 29;
}

std::uint64_t mark_of(const Schedule& schedule, const Block& block, DataType type_of_call, bool put) {
  const DataType type = block.area == Area::array ? schedule.arrays[block.array].type : type_of_call;
  return block.count == 0 ? 0 : static_cast<std::uint64_t>(type) * 2 + 1 + (put ? 128 : 0);
}

}  // namespace

std::optional<std::string> why_invalid(const Schedule& schedule) { return ScheduleCheck(schedule).run(); }

std::vector<const Step*> puts_of_signals(const Schedule& schedule) {
  std::vector<const Step*> puts(schedule.steps.size(), nullptr);
  std::map<int, const Step*> open;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (step.kind == StepKind::put) open[step.peer] = &step;
    if (step.kind == StepKind::signal) puts[i] = std::exchange(open[step.peer], nullptr);
  }
  return puts;
}

MessageSummary sent_to(const Schedule& schedule, int peer, DataType type_of_call) {
  MessageSummary summary;
  const std::vector<const Step*> puts = puts_of_signals(schedule);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& step = schedule.steps[i];
    if (!sends(step.kind) || step.peer != peer) continue;
    const Block block = step.kind == StepKind::send ? step.source : puts[i] == nullptr ? Block{} : puts[i]->source;
    add(summary, block.count * (block.count == 0 ? 0 : bytes_of_element(schedule, block, type_of_call)),
        mark_of(schedule, block, type_of_call, step.kind == StepKind::signal));
  }
  return summary;
}

MessageSummary received_from(const Schedule& schedule, int peer, DataType type_of_call) {
  MessageSummary summary;
  for (const Step& step : schedule.steps) {
    if (!receives(step.kind) || step.peer != peer) continue;
    const Block& block = step.destination;
    add(summary, block.count * (block.count == 0 ? 0 : bytes_of_element(schedule, block, type_of_call)),
        mark_of(schedule, block, type_of_call, step.kind == StepKind::wait));
  }
  return summary;
}

std::optional<std::string> why_unlike(std::span<const Schedule> schedules) {
  for (const Schedule& from : schedules)
    for (const Schedule& to : schedules) {
      const MessageSummary sent = sent_to(from, to.rank, DataType::uint8),
                           received = received_from(to, from.rank, DataType::uint8);
      const auto text = [](const MessageSummary& summary) { return std::to_string(summary.messages) + " messages"; };
      if (sent != received)
        return "rank " + std::to_string(from.rank) + " sends " + text(sent) + " to rank " + std::to_string(to.rank) +
               ", which takes " + text(received) + (sent.messages == received.messages ? " of other sizes" : "");
    }
  return {};
}

}  // namespace waywiser
