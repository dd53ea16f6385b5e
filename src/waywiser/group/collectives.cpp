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

// The other array of a rank that is not the root is not used.
bool uses_both(const CollectiveCall& wanted) {
  const bool to_root = wanted.operation == Collective::gather || wanted.operation == Collective::reduce;
  return wanted.rank == wanted.root || !(to_root || wanted.operation == Collective::scatter);
}

Bytes own_block(const CollectiveCall& wanted) {
  const Bytes size = bytes_of(wanted.as.type);
  if (wanted.counts.empty()) return static_cast<std::size_t>(wanted.rank) * wanted.count * size;
  return std::accumulate(wanted.counts.begin(), wanted.counts.begin() + wanted.rank, std::size_t{0}) * size;
}

}  // namespace

// What sets GPUs up comes before the call's number: at other ranks another call may do it, a message for example.
// Whether input and output are one array may differ between ranks, the algorithm must not: all_to_all reads a copy.
Future Group::State::run(CollectiveCall wanted, ConstElements input, Elements output, Mode mode) {
  std::vector<std::byte> copy;
  try {
    if (share_memory(input.region, output.region) && uses_both(wanted)) {
      const bool copies = mode.stream() == nullptr && !mode.begins() && !input.region.place.is_gpu();
      check_apart(wanted.as.kind, {input.region, output.region, own_block(wanted), copies});
      if (wanted.operation == Collective::all_to_all) {
        copy.assign(input.region.data, input.region.data + input.region.bytes);
        input.region.data = copy.data();
      }
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

Future run(Group& group, CollectiveCall wanted, ConstElements input, Elements output, Mode mode) {
  return group.state_->run(std::move(wanted), input, output, mode);
}

Future Group::barrier(Mode mode) {
  const std::lock_guard lock(*state_->core);
  const Place place = mode.stream() != nullptr ? mode.stream()->place() : host(0);
  const Elements nothing({nullptr, 0, place}, DataType::uint8);
  return state_->run(state_->core->next_collective(Collective::barrier, {}, 0), nothing, nothing, mode);
}

Future Group::broadcast(Elements data, int root, Mode mode) {
  const std::lock_guard lock(*state_->core);
  state_->core->check_rank(root, "broadcast from");
  return state_->run(state_->core->next_collective(Collective::broadcast, data, data.count(), ReduceOp::sum, root),
                     data, data, mode);
}

Future Group::reduce(ConstElements input, Elements output, ReduceOp op, int root, Mode mode) {
  const std::lock_guard lock(*state_->core);
  state_->core->check_rank(root, "reduce to");
  check_reduces(CallKind::reduce, input, output, op);
  if (rank() == root)
    check_count(CallKind::reduce, "the output", output.count(), input.count());
  else
    output = Elements({nullptr, 0, input.region.place}, input.type);
  return state_->run(state_->core->next_collective(Collective::reduce, input, input.count(), op, root), input, output,
                     mode);
}

Future Group::all_reduce(ConstElements input, Elements output, ReduceOp op, Mode mode) {
  const std::lock_guard lock(*state_->core);
  check_reduces(CallKind::all_reduce, input, output, op);
  check_count(CallKind::all_reduce, "the output", output.count(), input.count());
  return state_->run(state_->core->next_collective(Collective::all_reduce, input, input.count(), op), input, output,
                     mode);
}

Future Group::reduce_scatter(ConstElements input, Elements output, ReduceOp op, Mode mode) {
  const std::lock_guard lock(*state_->core);
  check_reduces(CallKind::reduce_scatter, input, output, op);
  check_count(CallKind::reduce_scatter, "the input", input.count(), output.count() * static_cast<std::size_t>(size()));
  return state_->run(state_->core->next_collective(Collective::reduce_scatter, input, output.count(), op), input,
                     output, mode);
}

Future Group::all_gather(ConstElements input, Elements output, Mode mode) {
  const std::lock_guard lock(*state_->core);
  check_types(CallKind::all_gather, input, output);
  check_count(CallKind::all_gather, "the output", output.count(), input.count() * static_cast<std::size_t>(size()));
  return state_->run(state_->core->next_collective(Collective::all_gather, input, input.count()), input, output, mode);
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
  const std::lock_guard lock(*state_->core);
  check_types(CallKind::all_to_all, input, output);
  check_count(CallKind::all_to_all, "the output", output.count(), input.count());
  const auto ranks = static_cast<std::size_t>(size());
  if (input.count() % ranks != 0)
    refuse(CallKind::all_to_all,
           std::to_string(input.count()) + " elements cannot be shared out to " + std::to_string(ranks) + " ranks");
  return state_->run(state_->core->next_collective(Collective::all_to_all, input, input.count() / ranks), input, output,
                     mode);
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
  const std::lock_guard lock(*state_->core);
  state_->core->check_rank(root, "gather to");
  check_types(CallKind::gather, input, output);
  if (rank() == root)
    check_count(CallKind::gather, "the output", output.count(), input.count() * static_cast<std::size_t>(size()));
  return state_->run(state_->core->next_collective(Collective::gather, input, input.count(), ReduceOp::sum, root),
                     input, output, mode);
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
  const std::lock_guard lock(*state_->core);
  state_->core->check_rank(root, "scatter from");
  check_types(CallKind::scatter, input, output);
  if (rank() == root)
    check_count(CallKind::scatter, "the input", input.count(), output.count() * static_cast<std::size_t>(size()));
  return state_->run(state_->core->next_collective(Collective::scatter, output, output.count(), ReduceOp::sum, root),
                     input, output, mode);
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
