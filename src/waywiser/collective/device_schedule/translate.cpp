#include "waywiser/collective/device_schedule/translate.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "waywiser/collective/device_schedule/direct_messages.hpp"
#include "waywiser/collective/device_schedule/unit_moves.hpp"
#include "waywiser/collective/fused/rare_numbers.hpp"
#include "waywiser/kernels/block/ll128.hpp"

namespace waywiser::program {
namespace {

// The largest power of two, up to 16, that divides all added values.
class Alignment {
 public:
  void add(std::uint64_t value) { bits_ |= value; }
  void add(const View& view, std::uint64_t bytes, std::span<const std::uint64_t> offsets) {
    add(reinterpret_cast<std::uintptr_t>(view.data));
    if (view.run >= bytes) return;
    add(view.run);
    for (const std::uint64_t stride : view.strides) add(stride);
    for (const std::uint64_t offset : offsets) add(offset);
  }
  std::uint32_t word() const { return static_cast<std::uint32_t>(bits_ & (~bits_ + 1)); }

 private:
  std::uint64_t bits_ = 16;
};

class Translator {
 public:
  Translator(const Schedule& schedule, DataType type, ReduceOp op, const Addresses& addresses,
             const MessagePlans& messages, std::span<const LandingPlan> plans, std::uint32_t multiprocessors)
      : schedule_(schedule),
        type_(type),
        op_(op),
        addresses_(addresses),
        messages_(messages),
        plans_(plans),
        most_blocks_(std::min(messages.most_blocks, multiprocessors)) {}

  Translation run() {
    find_places();
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      if (i == 0 || schedule_.steps[i].round != schedule_.steps[i - 1].round) end_round();
      if (!is_needed(schedule_.steps[i])) continue;
      result_.instructions.push_back(instruction(i));
      spreads_.push_back(messages_.of_steps[i].spreads && !is_local(schedule_.steps[i].kind));
    }
    end_round();
    for (Instruction& each : result_.instructions) each.first_block %= result_.blocks;
    result_.form = form();
    return std::move(result_);
  }

 private:
  // Gives the instructions since the last end their blocks; the next round begins behind them.
  void end_round() {
    const std::size_t first = result_.rounds.empty() ? 0 : result_.rounds.back();
    spread(first, false);
    spread(first, true);
    std::uint32_t pieces = 0;
    for (std::size_t i = first; i < result_.instructions.size(); ++i) {
      result_.instructions[i].first_block = pieces;
      pieces += result_.instructions[i].pieces;
    }
    result_.blocks = std::clamp(pieces, result_.blocks, std::max(most_blocks_, result_.blocks));
    result_.rounds.push_back(static_cast<std::uint32_t>(result_.instructions.size()));
  }

  // All blocks share the messages that an end may cut as it likes: about as many bytes for each block. Short words take
  // longer to gather than to send, so their pieces give every thread as many of them.
  void spread(std::size_t first, bool takes) {
    const auto each_one = [&](auto f) {
      for (std::size_t i = first; i < result_.instructions.size(); ++i)
        if (spreads_[i] && waits(result_.instructions[i].act) == takes) f(result_.instructions[i]);
    };
    std::uint64_t all = 0;
    each_one([&](const Instruction& each) { all += each.bytes; });
    each_one([&](Instruction& each) {
      const std::uint64_t blocks = std::max<std::uint64_t>(each.bytes * most_blocks_ / all, 1),
                          unit = each.word < 16 ? each.piece
                                 : each.ll128   ? block::data_bytes_of_pair
                                                : 16;
      const std::uint64_t share = ((each.bytes + blocks - 1) / blocks + unit - 1) / unit * unit;
      each.piece = std::max(each.piece, share);
      each.pieces = static_cast<std::uint32_t>((each.bytes + each.piece - 1) / each.piece);
    });
  }

  Form form() const {
    const std::vector<Instruction>& all = result_.instructions;
    if (result_.rounds.size() != 2 || all.empty() || all.size() > most_kept) return Form::any;
    const auto every = [&](auto is) { return std::ranges::all_of(all, is); };
    const bool messages = every(
        [](const Instruction& each) { return (each.act == Act::send || each.act == Act::take) && !each.reduces; });
    if (!messages) return Form::any;
    const auto plain = [](const Instruction& each, const View& view) { return is_plain(view, each.bytes, each.word); };
    if (every([](const Instruction& each) { return each.ll; }))
      return every([&](const Instruction& each) {
        const View& view = each.act == Act::send ? each.from : each.to;
        return each.word >= sizeof(block::Word8) && view.run >= each.bytes && view.offsets == nullptr;
      })
                 ? Form::packets
                 : Form::any;
    if (every([](const Instruction& each) { return each.ll128; })) {
      if (every([&](const Instruction& each) { return plain(each, each.act == Act::send ? each.from : each.to); }))
        return Form::lines;
      if (!every([&](const Instruction& each) { return each.word == all.front().word; })) return Form::any;
      switch (all.front().word) {
        case 16: return Form::lines_of_rows_16;
        case 8: return Form::lines_of_rows_8;
        case 4: return Form::lines_of_rows_4;
        default: return Form::any;
      }
    }
    if (!every([](const Instruction& each) { return each.direct && (each.act == Act::take || each.word == 16); }))
      return Form::any;
    const bool all_plain = every([&](const Instruction& each) {
      return each.act == Act::take || (plain(each, each.from) && plain(each, each.to));
    });
    return all_plain ? Form::stores : Form::stores_of_rows;
  }

  static bool is_needed(const Step& step) { return !is_local(step.kind) || step.destination != step.source; }

  std::uint64_t bytes(const Block& block) const {
    return block.count == 0 ? 0 : block.count * bytes_of_element(schedule_, block, type_);
  }

  // Finds each message's place in the receiver's landing memory, after the earlier messages between the same two ranks.
  void find_places() {
    places_.resize(schedule_.steps.size());
    const std::vector<const Step*> puts = puts_of_signals(schedule_);
    std::map<int, std::uint64_t> sent, received;
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) {
      const Step& step = schedule_.steps[i];
      if (is_local(step.kind) || step.kind == StepKind::put) continue;
      std::uint64_t& end = (receives(step.kind) ? received : sent)[step.peer];
      places_[i] = std::exchange(end, end + messages_.of_steps[i].bytes);
      if (puts[i] != nullptr) places_[static_cast<std::size_t>(puts[i] - schedule_.steps.data())] = places_[i];
    }
  }

  Instruction instruction(std::size_t index) {
    const Step& step = schedule_.steps[index];
    Instruction each;
    each.op = op_;
    each.reduces = step.kind == StepKind::receive_reduce || step.kind == StepKind::reduce;
    const Block& block = step.source.count != 0 ? step.source : step.destination;
    each.type = fused::computed_as(block.area == Area::array ? schedule_.arrays[block.array].type : type_, op_);
    each.bytes = bytes(block);
    Alignment alignment;
    each.from = view(step.source, alignment);
    each.to = view(step.destination, alignment);
    const MessagePlan plan = is_local(step.kind) ? plan_of_copy(each.bytes) : messages_.of_steps[index];
    each.direct = plan.kind == ProgramAlgorithm::Kind::direct;
    if (each.direct && (step.kind == StepKind::send || step.kind == StepKind::put)) {
      each.to = addresses_.direct[index];
      alignment.add(each.to, each.bytes, {});
    }
    each.word = alignment.word();
    if (!is_local(step.kind)) connect(each, step, places_[index] + plan.slot_at, places_[index]);
    each.act = act_of(step.kind);
    each.ll = plan.kind == ProgramAlgorithm::Kind::ll;
    each.ll128 = plan.kind == ProgramAlgorithm::Kind::ll128;
    each.from.set_dividers(each.bytes);
    each.to.set_dividers(each.bytes);
    each.pieces = plan.pieces;
    each.piece = plan.piece;
    return each;
  }

  static Act act_of(StepKind kind) {
    switch (kind) {
      case StepKind::send: return Act::send;
      case StepKind::put: return Act::put;
      case StepKind::signal: return Act::signal;
      case StepKind::receive:
      case StepKind::receive_reduce:
      case StepKind::wait: return Act::take;
      default: return Act::copy;
    }
  }

  void connect(Instruction& each, const Step& step, std::uint64_t slot_at, std::uint64_t flags_at) {
    const bool takes = receives(step.kind);
    const auto peer = static_cast<std::uint32_t>(step.peer), self = static_cast<std::uint32_t>(schedule_.rank);
    const std::uint32_t receiver = takes ? self : peer, sender = takes ? peer : self;
    const LandingPlan& plan = plans_[receiver];
    each.peer = peer;
    each.turn = plan.turn;
    std::byte* messages = addresses_.landing[receiver] + begun_bytes + plan.base[sender];
    each.flags = reinterpret_cast<std::uint64_t*>(messages + flags_at);
    each.slot = messages + slot_at;
    (takes ? result_.takes_from : result_.gives_to) |= 1u << peer;
  }

  std::byte* buffer(const Block& block) const {
    switch (block.area) {
      case Area::input: return addresses_.input;
      case Area::output: return addresses_.output;
      case Area::scratch: return addresses_.scratch;
      case Area::array: return addresses_.arrays[block.array];
    }
    return nullptr;
  }

  View view(const Block& block, Alignment& alignment) {
    View view;
    if (block.count == 0) return view;
    const std::uint64_t size = bytes_of_element(schedule_, block, type_);
    view = layout_of(schedule_, block, size);
    view.data = buffer(block) + block.offset * size;
    std::size_t first = result_.offsets.size();
    if (block.layout != 0) {
      const BlockLayout& layout = schedule_.layouts[block.layout - 1];
      for (const std::size_t index : layout.indices) result_.offsets.push_back(index * size);
      if (!layout.indices.empty()) view.offsets = addresses_.offsets + first;
    }
    if (view.offsets != nullptr) view.strides[0] = view.strides[1] = view.strides[2] = 0;
    alignment.add(view, view.offsets != nullptr ? ~std::uint64_t{0} : block.count * size,
                  std::span(result_.offsets).subspan(first));
    return view;
  }

  const Schedule& schedule_;
  const DataType type_;
  const ReduceOp op_;
  const Addresses& addresses_;
  const MessagePlans& messages_;
  const std::span<const LandingPlan> plans_;
  const std::uint32_t most_blocks_;
  std::vector<std::uint64_t> places_;
  std::vector<bool> spreads_;  // by instruction
  Translation result_;
};

}  // namespace

std::size_t offsets_of(const Schedule& schedule) {
  std::size_t total = 0;
  for (const Step& step : schedule.steps)
    for (const Block& block : {step.destination, step.source})
      if (block.layout != 0) total += schedule.layouts[block.layout - 1].indices.size();
  return total;
}

Translation translate(const Schedule& schedule, DataType type_of_call, ReduceOp op, const Addresses& addresses,
                      const MessagePlans& messages, std::span<const LandingPlan> plans, int multiprocessors) {
  return Translator(schedule, type_of_call, op, addresses, messages, plans, static_cast<std::uint32_t>(multiprocessors))
      .run();
}

}  // namespace waywiser::program
