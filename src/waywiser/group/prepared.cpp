#include "waywiser/group/prepared.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/stream_operations.hpp"
#include "waywiser/collective/neighbor_exchange/array_exchange.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/comm/session/in_call.hpp"
#include "waywiser/group/array_places.hpp"
#include "waywiser/group/prepared_state.hpp"

namespace waywiser {
namespace {

void check_reductions(const Schedule& schedule, ReduceOp op) {
  for (const Step& step : schedule.steps) {
    const bool reduces = step.kind == StepKind::reduce || step.kind == StepKind::receive_reduce;
    const Block& block = step.destination;
    if (reduces && block.area == Area::array && block.array < schedule.arrays.size())
      check_reduction(schedule.arrays[block.array].type, op);
  }
}

// `arrays`: of the schedule's arrays, those of the caller.
void check_apart(const Schedule& schedule, std::span<const Elements> arrays) {
  std::vector<PartUse> uses;
  for (const ScheduleArray& each : schedule.arrays) {
    const bool of_caller = each.use == ArrayUse::given || each.use == ArrayUse::taken;
    if (of_caller && uses.size() < arrays.size())
      uses.push_back({arrays[uses.size()].region, uses.size(), each.use == ArrayUse::taken});
  }
  if (const auto found = find_overlap(uses))
    throw Error(ErrorKind::invalid_input, "a schedule: array " + std::to_string(found->first.part) +
                                              ", which it writes, overlaps array " +
                                              std::to_string(found->second.part));
}

}  // namespace

Prepared::State::State(std::shared_ptr<Group::State> of, const std::shared_ptr<const Schedule>& schedule,
                       std::span<const Elements> arrays, const std::optional<std::span<const ArrayExchange>>& exchange,
                       ReduceOp op)
    : group(std::move(of)), reduce_op(op) {
  GroupCore& core = *group->core;
  const std::vector<ArrayPlaces> places = places_of_all(core, arrays);
  if (std::ranges::none_of(places, &ArrayPlaces::gpu)) {
    on_hosts = std::make_shared<Execution>(group->session());
    on_hosts->bind(core.shared_members(), schedule, arrays);
    return;
  }
  why_staged = why_no_gpus(places);
  all_on_gpus = why_staged.empty();
  if (all_on_gpus) {
    StreamOperations& gpus = group->gpus.of(gpu_of(arrays));
    why_staged = gpus.domain().why_not_whole();
    if (why_staged.empty()) prepare_on(gpus, schedule, arrays);
  }
  if (on_gpus) return;
  if (!exchange) throw Error(ErrorKind::unavailable, "a schedule on arrays of GPUs: " + why_staged);
  set_up_messages(*exchange, arrays);
}

// All ranks get the same reason.
void Prepared::State::prepare_on(StreamOperations& gpus, const std::shared_ptr<const Schedule>& schedule,
                                 std::span<const Elements> arrays) {
  try {
    on_gpus = gpus.prepared().prepare(*group->core, schedule, arrays, reduce_op);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    why_staged = error.what();
  }
}

void Prepared::State::set_up_messages(std::span<const ArrayExchange> exchange, std::span<const Elements> arrays) {
  Platform* platform = gpu_of(arrays).is_gpu() ? &group->session().gpus().platform() : nullptr;
  packed = std::make_shared<PackedArrays>(platform, exchange, arrays);
  for (std::size_t i = 0; i < exchange.size(); ++i)
    messages.push_back({exchange[i].peer, packed->packed()[2 * i], packed->packed()[2 * i + 1], exchange[i].give_tag,
                        exchange[i].take_tag});
}

// Waits for started kernels first.
Prepared::State::~State() {
  group->session().lock_when_free_of(group->core->members().key());
  const std::lock_guard lock(group->session(), std::adopt_lock);
  if (all_on_gpus && !group->session().is_forked()) group->gpus.end_prepared();
}

Call Prepared::State::next_call() const {
  return group->core->next_call(CallKind::neighbor_exchange, {}, -1, reduce_op);
}

void Prepared::State::check_is_over() const {
  if (waits_for_stream || begun.is_under_way())
    throw Error(ErrorKind::invalid_input, "a prepared operation is started again before wait()");
}

void Prepared::State::start(Stream& stream) {
  const std::lock_guard lock(*group->core);
  check_is_over();
  if (collective) {
    group->run(*collective, Mode::on(stream));
    return;
  }
  const Call call = next_call();
  if (on_gpus) {
    const InCall in_call(group->session(), call);
    return group->gpus.start(*on_gpus, &stream);
  }
  if (on_hosts) throw Error(ErrorKind::invalid_input, text(call) + ": arrays of the host on a GPU's stream");
  if (all_on_gpus) {
    if (packed->packing() != nullptr) group->gpus.start(*packed->packing(), &stream);
    group->gpus.exchange(messages, stream);
    if (packed->unpacking() != nullptr) group->gpus.start(*packed->unpacking(), &stream);
    return;
  }
  group->gpus.before_hosts(call, stream);
  packed->pack();
  group->messages.exchange(messages);
  packed->unpack();
}

void Prepared::State::start() {
  const std::lock_guard lock(*group->core);
  check_is_over();
  if (collective && on_hosts) return start_on_hosts(group->core->numbered_again(as));
  if (collective) {
    begun = group->run(*collective, Mode::begin);
    return begun.keep(owner);
  }
  const Call call = next_call();
  if (!on_gpus && !on_hosts) {
    packed->pack();
    begun = group->messages.begin_exchange(messages);
    unpacks = true;
    return begun.keep(std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(owner, packed));
  }
  if (on_hosts) return start_on_hosts(call);
  const InCall in_call(group->session(), call);
  group->gpus.start(*on_gpus, nullptr);
  waits_for_stream = true;
}

void Prepared::State::start_on_hosts(const Call& call) {
  const InCall in_call(group->session(), call);
  on_hosts->begin(call);
  group->session().start(on_hosts);
  begun = Future(group->core, on_hosts);  // until wait(), also where it is complete already
  begun.keep(owner);
}

void Prepared::State::wait() {
  const std::lock_guard lock(*group->core);
  if (!waits_for_stream) {
    begun.wait();
    if (std::exchange(unpacks, false)) packed->unpack();
    return;
  }
  waits_for_stream = false;
  group->gpus.synchronize();
}

Prepared::State& Prepared::held() const {
  if (!state_) throw Error(ErrorKind::invalid_input, "this Prepared was moved from: its operation is in another one");
  return *state_;
}

Prepared::Prepared(std::unique_ptr<State> state) : state_(std::move(state)) {}
Prepared::Prepared(Prepared&& other) noexcept = default;
Prepared& Prepared::operator=(Prepared&& other) noexcept = default;
Prepared::~Prepared() = default;

void Prepared::start(Stream& stream) { held().start(stream); }
void Prepared::start() { held().start(); }
void Prepared::wait() { held().wait(); }
void Prepared::keep(std::shared_ptr<void> owner) {
  const std::lock_guard lock(*held().group->core);
  held().owner = std::move(owner);
}
const std::string& Prepared::why_staged() const { return held().why_staged; }

const std::string& Prepared::why_copied() const {
  static const std::string no_reason;
  return held().on_gpus ? held().on_gpus->why_slots() : no_reason;
}

std::string Prepared::explain() const {
  if (held().collective) return "each start is the group's " + std::string(name(held().collective->operation));
  if (held().on_gpus) return held().on_gpus->explain();
  if (held().on_hosts) return "a schedule of the hosts";
  return "messages of the hosts or of streams: " + held().why_staged;
}

Prepared Group::prepare_exchange(std::span<const Exchange> neighbors) {
  std::vector<ArrayExchange> parts;
  std::vector<Elements> arrays;
  for (const Exchange& each : neighbors) {
    parts.push_back({each.rank, ArrayPart::whole(each.give.type, each.give.count()),
                     ArrayPart::whole(each.take.type, each.take.count()), each.give_tag, each.take_tag});
    const ConstRegion given = each.give.region;  // only read
    arrays.emplace_back(Region{const_cast<std::byte*>(given.data), given.bytes, given.place}, each.give.type);
    arrays.push_back(each.take);
  }
  return Prepared::of_parts(*this, parts, arrays);
}

Prepared Prepared::of_parts(Group& group, std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays) {
  const auto& state = group.state_;
  const std::lock_guard lock(*state->core);
  if (arrays.size() != 2 * neighbors.size())
    throw Error(ErrorKind::invalid_input, std::to_string(arrays.size()) + " arrays for " +
                                              std::to_string(neighbors.size()) + " neighbours, which have two each");
  for (const ArrayExchange& each : neighbors) state->messages.check_neighbor(each.peer, each.give_tag, each.take_tag);
  check_apart(neighbors, arrays);
  auto schedule =
      std::make_shared<const Schedule>(collective::neighbor_exchange::of_arrays(group.rank(), group.size(), neighbors));
  return Prepared(std::make_unique<State>(state, schedule, arrays, neighbors, ReduceOp::sum));
}

Prepared Prepared::of_schedule(Group& group, Schedule schedule, std::span<const Elements> arrays, ReduceOp op) {
  if (schedule.rank != group.rank() || schedule.ranks != group.size())
    throw Error(ErrorKind::invalid_input, "a schedule for rank " + std::to_string(schedule.rank) + " of " +
                                              std::to_string(schedule.ranks) + ", not for this group");
  if (op == ReduceOp::avg) throw Error(ErrorKind::invalid_input, "a schedule: avg is for collectives");
  check_reductions(schedule, op);
  check_apart(schedule, arrays);
  const std::lock_guard lock(*group.state_->core);
  auto kept = std::make_shared<const Schedule>(std::move(schedule));
  return Prepared(std::make_unique<State>(group.state_, kept, arrays, std::nullopt, op));
}

}  // namespace waywiser
