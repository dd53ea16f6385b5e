// The collectives of a Group: checks the arguments, then runs them on its GPUs or its hosts.
#include <mutex>
#include <numeric>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/session/call_arrays.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/group/call_checks.hpp"
#include "waywiser/group/group_state.hpp"

namespace waywiser {
namespace {

std::vector<std::size_t> checked_counts(CallKind kind, std::span<const std::size_t> counts, int ranks) {
  if (counts.size() != static_cast<std::size_t>(ranks))
    refuse(kind, std::to_string(counts.size()) + " counts for " + std::to_string(ranks) + " ranks");
  return {counts.begin(), counts.end()};
}

std::size_t total(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

// What sets GPUs up comes before the call's number: at other ranks another call may do it, a message for example.
// Whether input and output are one array may differ between ranks, the algorithm must not: all_to_all reads a copy.
Future Group::State::run(CollectiveCall wanted, ConstElements input, Elements output, Mode mode) {
  std::vector<std::byte> copy;
  try {
    check_shared(wanted, input, output, mode.stream() == nullptr && !mode.begins() && !input.region.place.is_gpu());
    if (wanted.operation == Collective::all_to_all && share_memory(input.region, output.region)) {
      copy.assign(input.region.data, input.region.data + input.region.bytes);
      input.region.data = copy.data();
    }
    if (mode.stream() != nullptr && !mode.stream()->place().is_gpu())
      mode.stream()->synchronize(Deadline::in(session().timeout()));
    if (const auto gpu = GpuCalls::gpu_for(wanted, input, output, mode.stream())) {
      if (!gpus.are_set_up()) {
        const Call first = std::exchange(wanted.as, {});  // an error takes no number back
        core->take_back(first);
        gpus.set_up(*gpu, first, mode.stream());
        wanted.as = core->numbered_again(first);
      }
      if (auto on_gpus = gpus.collective(wanted, *gpu, input, output, mode)) return {core, std::move(*on_gpus)};
    }
    if (mode.begins()) return {core, hosts.start(wanted, input, output)};
    hosts.run(wanted, input, output);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid_input || error.kind() == ErrorKind::unavailable) core->take_back(wanted.as);
    throw;
  }
  return {};
}

Future run(Group& group, const WantedCollective& wanted, Mode mode) { return group.state_->run(wanted, mode); }

// A call like earlier ones is right as they were, unless its arrays share memory in another way.
Future Group::State::run(WantedCollective wanted, Mode mode) {
  const std::lock_guard lock(*core);
  const Region output = wanted.output.region;
  const ConstRegion input = wanted.operation == Collective::broadcast ? ConstRegion(output) : wanted.input.region;
  if (mode.stream() != nullptr || mode.begins() || input.place.is_gpu() || output.place.is_gpu()) {
    CollectiveCall call = numbered(*core, wanted);
    return run(std::move(call), wanted.input, wanted.output, mode);
  }
  const CallShape shape{wanted.operation, wanted.input.type, wanted.output.type, wanted.op,
                        wanted.root,      input.bytes,       output.bytes};
  const bool is_right = !share_memory(input, output) || may_share(kind_of(wanted.operation), {input, output});
  if (is_right && hosts.run_again(shape, input, output)) [[likely]]
    return {};
  const CollectiveCall call = numbered(*core, wanted);
  run(call, wanted.input, wanted.output, mode);
  hosts.note(shape, call);
  return {};
}

Future Group::barrier(Mode mode) {
  const Place place = mode.stream() != nullptr ? mode.stream()->place() : host(0);
  const Elements nothing({nullptr, 0, place}, DataType::uint8);
  return state_->run({Collective::barrier, nothing, nothing}, mode);
}

Future Group::broadcast(Elements data, int root, Mode mode) {
  return state_->run({Collective::broadcast, {}, data, ReduceOp::sum, root}, mode);
}

Future Group::reduce(ConstElements input, Elements output, ReduceOp op, int root, Mode mode) {
  return state_->run({Collective::reduce, input, output, op, root}, mode);
}

Future Group::all_reduce(ConstElements input, Elements output, ReduceOp op, Mode mode) {
  return state_->run({Collective::all_reduce, input, output, op}, mode);
}

Future Group::reduce_scatter(ConstElements input, Elements output, ReduceOp op, Mode mode) {
  return state_->run({Collective::reduce_scatter, input, output, op}, mode);
}

Future Group::all_gather(ConstElements input, Elements output, Mode mode) {
  return state_->run({Collective::all_gather, input, output}, mode);
}

Future Group::all_gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, Mode mode) {
  const std::lock_guard lock(*state_->core);
  check_types(CallKind::all_gather, input, output);
  std::vector<std::size_t> all = checked_counts(CallKind::all_gather, counts, size());
  check_count(CallKind::all_gather, "the input", input.count(), counts[static_cast<std::size_t>(rank())]);
  check_count(CallKind::all_gather, "the output", output.count(), total(all));
  CollectiveCall call = state_->core->next_collective(Collective::all_gather, output, 0);
  call.counts = std::move(all);
  return state_->run(std::move(call), input, output, mode);
}

Future Group::all_to_all(ConstElements input, Elements output, Mode mode) {
  return state_->run({Collective::all_to_all, input, output}, mode);
}

Future Group::all_to_all_v(ConstElements input, std::span<const std::size_t> give, Elements output,
                           std::span<const std::size_t> take, Mode mode) {
  const std::lock_guard lock(*state_->core);
  check_types(CallKind::all_to_all_v, input, output);
  std::vector<std::size_t> given = checked_counts(CallKind::all_to_all_v, give, size());
  std::vector<std::size_t> taken = checked_counts(CallKind::all_to_all_v, take, size());
  check_count(CallKind::all_to_all_v, "the input", input.count(), total(given));
  check_count(CallKind::all_to_all_v, "the output", output.count(), total(taken));
  CollectiveCall call = state_->core->next_collective(Collective::all_to_all, input, 0);
  call.as.kind = CallKind::all_to_all_v;
  call.counts = std::move(given);
  call.receive_counts = std::move(taken);
  return state_->run(std::move(call), input, output, mode);
}

Future Group::gather(ConstElements input, Elements output, int root, Mode mode) {
  return state_->run({Collective::gather, input, output, ReduceOp::sum, root}, mode);
}

Future Group::gather_v(ConstElements input, Elements output, std::span<const std::size_t> counts, int root, Mode mode) {
  const std::lock_guard lock(*state_->core);
  state_->core->check_rank(root, "gather to");
  check_types(CallKind::gather, input, output);
  std::vector<std::size_t> all = checked_counts(CallKind::gather, counts, size());
  check_count(CallKind::gather, "the input", input.count(), counts[static_cast<std::size_t>(rank())]);
  if (rank() == root) check_count(CallKind::gather, "the output", output.count(), total(all));
  CollectiveCall call = state_->core->next_collective(Collective::gather, input, 0, ReduceOp::sum, root);
  call.as.count = total(all);
  call.counts = std::move(all);
  return state_->run(std::move(call), input, output, mode);
}

Future Group::scatter(ConstElements input, Elements output, int root, Mode mode) {
  return state_->run({Collective::scatter, input, output, ReduceOp::sum, root}, mode);
}

Future Group::scatter_v(ConstElements input, std::span<const std::size_t> counts, Elements output, int root,
                        Mode mode) {
  const std::lock_guard lock(*state_->core);
  state_->core->check_rank(root, "scatter from");
  check_types(CallKind::scatter, input, output);
  std::vector<std::size_t> all = checked_counts(CallKind::scatter, counts, size());
  check_count(CallKind::scatter, "the output", output.count(), counts[static_cast<std::size_t>(rank())]);
  if (rank() == root) check_count(CallKind::scatter, "the input", input.count(), total(all));
  CollectiveCall call = state_->core->next_collective(Collective::scatter, output, 0, ReduceOp::sum, root);
  call.as.count = total(all);
  call.counts = std::move(all);
  return state_->run(std::move(call), input, output, mode);
}

}  // namespace waywiser
