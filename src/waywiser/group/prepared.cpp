#include "waywiser/group/prepared.hpp"

#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/gpu/gpu_collectives.hpp"
#include "waywiser/collective/neighbor_exchange/array_exchange.hpp"
#include "waywiser/group/prepared_state.hpp"

namespace waywiser {
namespace {

// Where the arrays of one rank lie, as it tells the others.
struct ArrayPlaces {
  bool host = false, gpu = false;
};

Place gpu_of(std::span<const Elements> arrays) {
  const auto found = std::ranges::find_if(
      arrays, [](const Elements& each) { return each.region.bytes != 0 && each.region.place.is_gpu(); });
  return found == arrays.end() ? Place{} : found->region.place;
}

std::vector<ArrayPlaces> places_of_all(HostCollectives& hosts, std::span<const Elements> arrays) {
  ArrayPlaces mine;
  for (const Elements& each : arrays)
    if (each.region.bytes != 0) (each.region.place.is_gpu() ? mine.gpu : mine.host) = true;
  std::vector<ArrayPlaces> all(static_cast<std::size_t>(hosts.size()));
  hosts.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  return all;
}

// The same at all ranks; empty: kernels can.
std::string why_no_gpus(const std::vector<ArrayPlaces>& places) {
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].host) return "rank " + std::to_string(rank) + " has arrays of the host";
    if (!places[rank].gpu) return "rank " + std::to_string(rank) + " has no array of a GPU";
  }
  return {};
}

}  // namespace

Prepared::State::State(std::shared_ptr<Group::State> of, const std::shared_ptr<const Schedule>& schedule,
                       std::span<const Elements> arrays, const std::optional<std::span<const Exchange>>& exchange,
                       ReduceOp op)
    : group(std::move(of)), reduce_op(op) {
  if (exchange) messages.assign(exchange->begin(), exchange->end());
  HostCollectives& hosts = *group->hosts;
  const std::vector<ArrayPlaces> places = places_of_all(hosts, arrays);
  if (std::ranges::none_of(places, &ArrayPlaces::gpu)) {
    on_hosts = std::make_shared<Execution>(group->session());
    on_hosts->bind(hosts.shared_members(), schedule, arrays);
    return;
  }
  why_staged = why_no_gpus(places);
  if (why_staged.empty()) {
    GpuCollectives& gpus = group->gpus.of(gpu_of(arrays));
    why_staged = gpus.why_no_kernels();
    if (why_staged.empty()) on_gpus = gpus.prepared().prepare(hosts, schedule, arrays, op);
  }
  if (!on_gpus && !exchange) throw Error(ErrorKind::unavailable, "a schedule on arrays of GPUs: " + why_staged);
}

// Kernels that have been started end first.
Prepared::State::~State() {
  if (on_gpus && !group->session().is_forked()) group->gpus.end_prepared();
}

Call Prepared::State::next_call() const {
  return group->hosts->next_call(CallKind::neighbor_exchange, {}, -1, reduce_op);
}

void Prepared::State::check_is_over() const {
  if (waits_for_stream || begun.is_under_way())
    throw Error(ErrorKind::invalid_input, "a prepared operation is started again before wait()");
}

void Prepared::State::start(Stream& stream) {
  check_is_over();
  const Call call = next_call();
  if (on_gpus) {
    const InCall in_call(group->session(), call);
    return group->gpus.start(*on_gpus, &stream);
  }
  if (on_hosts) throw Error(ErrorKind::invalid_input, text(call) + ": arrays of the host on a GPU's stream");
  group->gpus.before_hosts(call, stream);
  group->messages.exchange(messages);
}

void Prepared::State::start() {
  check_is_over();
  const Call call = next_call();
  if (!on_gpus && !on_hosts) {
    begun = group->messages.begin_exchange(messages);
    return begun.keep(owner);
  }
  const InCall in_call(group->session(), call);
  if (on_gpus) {
    group->gpus.start(*on_gpus, nullptr);
    waits_for_stream = true;
    return;
  }
  on_hosts->begin(call);
  group->session().start(on_hosts);
  if (on_hosts->under_way) begun = Future(group->hosts->shared_session(), on_hosts);
  begun.keep(owner);
}

void Prepared::State::wait() {
  if (!waits_for_stream) return begun.wait();
  waits_for_stream = false;
  group->gpus.synchronize();
}

Prepared::Prepared(std::unique_ptr<State> state) : state_(std::move(state)) {}
Prepared::Prepared(Prepared&& other) noexcept = default;
Prepared& Prepared::operator=(Prepared&& other) noexcept = default;
Prepared::~Prepared() = default;

void Prepared::start(Stream& stream) { state_->start(stream); }
void Prepared::start() { state_->start(); }
void Prepared::wait() { state_->wait(); }
void Prepared::keep(std::shared_ptr<void> owner) { state_->owner = std::move(owner); }
const std::string& Prepared::why_staged() const noexcept { return state_->why_staged; }

Prepared Group::prepare_exchange(std::span<const Exchange> neighbors) {
  state_->messages.check_exchange(neighbors);
  std::vector<ArrayExchange> parts;
  std::vector<Elements> arrays;
  for (const Exchange& each : neighbors) {
    const std::size_t give = each.give.count(), take = each.take.count();
    parts.push_back({each.rank,
                     {each.give.type, give, 0, give, {}, false},
                     {each.take.type, take, 0, take, {}, false},
                     each.give_tag,
                     each.take_tag});
    const ConstRegion given = each.give.region;  // only read
    arrays.emplace_back(Region{const_cast<std::byte*>(given.data), given.bytes, given.place}, each.give.type);
    arrays.push_back(each.take);
  }
  auto schedule = std::make_shared<const Schedule>(collective::neighbor_exchange::of_arrays(rank(), size(), parts));
  return Prepared(std::make_unique<Prepared::State>(state_, schedule, arrays, neighbors, ReduceOp::sum));
}

Prepared Prepared::of_schedule(Group& group, Schedule schedule, std::span<const Elements> arrays, ReduceOp op) {
  if (schedule.rank != group.rank() || schedule.ranks != group.size())
    throw Error(ErrorKind::invalid_input, "a schedule for rank " + std::to_string(schedule.rank) + " of " +
                                              std::to_string(schedule.ranks) + ", not for this group");
  if (op == ReduceOp::avg) throw Error(ErrorKind::invalid_input, "a schedule: avg is for collectives");
  auto kept = std::make_shared<const Schedule>(std::move(schedule));
  return Prepared(std::make_unique<State>(group.state_, kept, arrays, std::nullopt, op));
}

}  // namespace waywiser
