#include <algorithm>
#include <cstring>
#include <numeric>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/default_choice.hpp"
#include "waywiser/collective/gpu/gpu_way.hpp"
#include "waywiser/comm/execution.hpp"
#include "waywiser/comm/group.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

[[noreturn]] void refuse(CallKind kind, const std::string& why) {
  throw Error(ErrorKind::invalid_input, std::string(name(kind)) + ": " + why);
}

void check_types(CallKind kind, ConstElements input, ConstElements output) {
  if (input.type != output.type)
    refuse(kind, "input of " + std::string(name(input.type)) + ", output of " + std::string(name(output.type)));
}

void check_count(CallKind kind, const char* which, std::size_t count, std::size_t expected) {
  if (count != expected)
    refuse(kind, std::string(which) + " has " + std::to_string(count) + " elements, " + std::to_string(expected) +
                     " are needed");
}

CollectiveCall asked(Collective operation, std::size_t count, int root = 0) {
  CollectiveCall call;
  call.operation = operation;
  call.count = count;
  call.root = root;
  return call;
}

std::vector<std::size_t> checked_counts(CallKind kind, std::span<const std::size_t> counts, int ranks) {
  if (counts.size() != static_cast<std::size_t>(ranks))
    refuse(kind, std::to_string(counts.size()) + " counts for " + std::to_string(ranks) + " ranks");
  return {counts.begin(), counts.end()};
}

std::size_t total(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

// Ranks of one machine have one number, so that algorithms can work inside machines first.
std::vector<int> machines_of(const Session& session, const Members& members) {
  std::vector<int> machines;
  for (const int rank : members.world) {
    const std::string& machine = session.introduction(rank).machine_id;
    const auto same = std::ranges::find_if(
        members.world, [&](int other) { return session.introduction(other).machine_id == machine; });
    machines.push_back(static_cast<int>(same - members.world.begin()));
  }
  const bool one = std::ranges::all_of(machines, [](int machine) { return machine == 0; });
  return one ? std::vector<int>() : machines;
}

bool overlap(ConstElements input, ConstElements output) { return waywiser::overlap(input.region, output.region); }

}  // namespace

// What was set, or what the plan says, or the default.
const CollectiveAlgorithm& Group::algorithm_for(const CollectiveCall& complete, DataType type) const {
  if (!way_.empty() && complete.operation != Collective::barrier) {
    // Some ways of GPUs have the name of an algorithm.
    const auto set = std::ranges::find_if(algorithms(), [&](const CollectiveAlgorithm& row) {
      return row.operation == complete.operation && row.name == way_;
    });
    if (set == algorithms().end() && !parse_gpu_way(way_)) find_algorithm(complete.operation, way_);  // says what is
    if (set != algorithms().end()) {
      if (const auto why = set->why_unavailable(complete)) throw Error(ErrorKind::unavailable, way_ + ": " + *why);
      return *set;
    }
  }
  const Chooser* chooser = session_->options().chooser.get();
  const CollectiveRow* row = nullptr;
  if (chooser != nullptr && complete.counts.empty() && complete.machine_of.empty())
    row = chooser->choose_collective(name(complete.operation), "host", size(), complete.count * bytes_of(type));
  for (const CollectiveAlgorithm& each : algorithms())
    if (row != nullptr && each.operation == complete.operation && each.name == row->way &&
        !each.why_unavailable(complete))
      return each;
  return default_algorithm(complete, bytes_of(type));
}

std::shared_ptr<const Schedule> Group::schedule_for(const CollectiveCall& call, DataType type) {
  const ScheduleKey key{static_cast<std::uint8_t>(call.operation), static_cast<std::uint8_t>(bytes_of(type)), call.root,
                        call.count};
  const bool kept = call.counts.empty();
  if (kept)
    if (auto known = schedules_.find(key)) return known;
  CollectiveCall complete = call;
  complete.rank = rank();
  complete.ranks = size();
  complete.machine_of = machines_of(*session_, *members_);
  Schedule schedule = algorithm_for(complete, type).make(complete);
  return kept ? schedules_.keep(key, std::move(schedule)) : std::make_shared<const Schedule>(std::move(schedule));
}

void Group::barrier_on(Stream* stream) {
  const Call call = next_call(CallKind::barrier, {}, -1);
  const Elements nothing({nullptr, 0, stream != nullptr ? stream->place() : host(0)}, DataType::uint8);
  if (done_by_gpus(call, asked(Collective::barrier, 0), nothing, nothing, stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(asked(Collective::barrier, 0), call.type), {}, {});
}

void Group::broadcast_on(Stream* stream, Elements data, int root) {
  check_peer(root, "broadcast from");
  const Call call = next_call(CallKind::broadcast, data, -1, ReduceOp::sum, root);
  const CollectiveCall wanted = asked(Collective::broadcast, data.count(), root);
  if (done_by_gpus(call, wanted, data, data, stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, data.type), data, data);
}

void Group::reduce_on(Stream* stream, ConstElements input, Elements output, ReduceOp op, int root) {
  check_peer(root, "reduce to");
  check_types(CallKind::reduce, input, output);
  if (rank() == root) check_count(CallKind::reduce, "the output", output.count(), input.count());
  const Call call = next_call(CallKind::reduce, input, -1, op, root);
  const CollectiveCall wanted = asked(Collective::reduce, input.count(), root);
  const Elements kept = rank() == root ? output : Elements({nullptr, 0, input.region.place}, input.type);
  if (done_by_gpus(call, wanted, input, kept, stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, input.type), input, output);
}

void Group::all_reduce_on(Stream* stream, ConstElements input, Elements output, ReduceOp op) {
  check_types(CallKind::all_reduce, input, output);
  check_count(CallKind::all_reduce, "the output", output.count(), input.count());
  const Call call = next_call(CallKind::all_reduce, input, -1, op);
  const CollectiveCall wanted = asked(Collective::all_reduce, input.count());
  if (done_by_gpus(call, wanted, input, output, stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, input.type), input, output);
}

void Group::all_gather_on(Stream* stream, ConstElements input, Elements output) {
  check_types(CallKind::all_gather, input, output);
  check_count(CallKind::all_gather, "the output", output.count(), input.count() * static_cast<std::size_t>(size()));
  const Call call = next_call(CallKind::all_gather, input, -1);
  const CollectiveCall wanted = asked(Collective::all_gather, input.count());
  if (done_by_gpus(call, wanted, input, output, stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, input.type), input, output);
}

void Group::all_gather_v_on(Stream* stream, ConstElements input, Elements output, std::span<const std::size_t> counts) {
  check_types(CallKind::all_gather, input, output);
  CollectiveCall wanted = asked(Collective::all_gather, 0);
  wanted.counts = checked_counts(CallKind::all_gather, counts, size());
  check_count(CallKind::all_gather, "the input", input.count(), counts[static_cast<std::size_t>(rank())]);
  check_count(CallKind::all_gather, "the output", output.count(), total(wanted.counts));
  const Call call = next_call(CallKind::all_gather, output, -1);
  if (stream != nullptr && all_gathered_by_gpus(call, input, output, wanted.counts, *stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, input.type), input, output);
}

void Group::reduce_scatter_on(Stream* stream, ConstElements input, Elements output, ReduceOp op) {
  check_types(CallKind::reduce_scatter, input, output);
  check_count(CallKind::reduce_scatter, "the input", input.count(), output.count() * static_cast<std::size_t>(size()));
  const Call call = next_call(CallKind::reduce_scatter, input, -1, op);
  const CollectiveCall wanted = asked(Collective::reduce_scatter, output.count());
  if (done_by_gpus(call, wanted, input, output, stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, input.type), input, output);
}

// In place by way of a copy: whether it is may differ between ranks, the algorithm must not.
void Group::all_to_all_on(Stream* stream, ConstElements input, Elements output) {
  check_types(CallKind::all_to_all, input, output);
  check_count(CallKind::all_to_all, "the output", output.count(), input.count());
  if (input.count() % static_cast<std::size_t>(size()) != 0)
    refuse(CallKind::all_to_all,
           std::to_string(input.count()) + " elements cannot be shared out to " + std::to_string(size()) + " ranks");
  const Call call = next_call(CallKind::all_to_all, input, -1);
  if (input.region.place.is_gpu() && overlap(input, output))
    refuse(call.kind, "input and output on a GPU must not overlap");
  const CollectiveCall wanted = asked(Collective::all_to_all, input.count() / static_cast<std::size_t>(size()));
  if (done_by_gpus(call, wanted, input, output, stream)) return;
  before_host_call(call, stream);
  run_apart(call, schedule_for(wanted, input.type), input, output);
}

void Group::all_to_all_v_on(Stream* stream, ConstElements input, std::span<const std::size_t> give, Elements output,
                            std::span<const std::size_t> take) {
  check_types(CallKind::all_to_all_v, input, output);
  CollectiveCall wanted = asked(Collective::all_to_all, 0);
  wanted.counts = checked_counts(CallKind::all_to_all_v, give, size());
  wanted.receive_counts = checked_counts(CallKind::all_to_all_v, take, size());
  check_count(CallKind::all_to_all_v, "the input", input.count(), total(wanted.counts));
  check_count(CallKind::all_to_all_v, "the output", output.count(), total(wanted.receive_counts));
  const Call call = next_call(CallKind::all_to_all_v, input, -1);
  if (input.region.place.is_gpu() && overlap(input, output))
    refuse(call.kind, "input and output on a GPU must not overlap");
  if (stream != nullptr && shuffled_by_gpus(call, input, wanted.counts, output, wanted.receive_counts, *stream)) return;
  before_host_call(call, stream);
  run_apart(call, schedule_for(wanted, input.type), input, output);
}

void Group::run_apart(const Call& call, std::shared_ptr<const Schedule> schedule, ConstElements input,
                      Elements output) {
  if (!overlap(input, output)) return run(call, std::move(schedule), input, output);
  if (input.region.place.is_gpu()) refuse(call.kind, "input and output on a GPU must not overlap");
  if (begins_ != nullptr) refuse(call.kind, "input and output must not overlap in a call that only begins");
  std::vector<std::byte> copy(input.region.bytes);
  std::memcpy(copy.data(), input.region.data, copy.size());
  run(call, std::move(schedule), {{copy.data(), copy.size(), input.region.place}, input.type}, output);
}

void Group::gather_on(Stream* stream, ConstElements input, Elements output, int root) {
  check_peer(root, "gather to");
  check_types(CallKind::gather, input, output);
  if (rank() == root)
    check_count(CallKind::gather, "the output", output.count(), input.count() * static_cast<std::size_t>(size()));
  const Call call = next_call(CallKind::gather, input, -1, ReduceOp::sum, root);
  if (stream != nullptr && gathered_by_gpus(call, input, output, even(input.count()), *stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(asked(Collective::gather, input.count(), root), input.type), input, output);
}

void Group::gather_v_on(Stream* stream, ConstElements input, Elements output, std::span<const std::size_t> counts,
                        int root) {
  check_peer(root, "gather to");
  check_types(CallKind::gather, input, output);
  CollectiveCall wanted = asked(Collective::gather, 0, root);
  wanted.counts = checked_counts(CallKind::gather, counts, size());
  check_count(CallKind::gather, "the input", input.count(), counts[static_cast<std::size_t>(rank())]);
  if (rank() == root) check_count(CallKind::gather, "the output", output.count(), total(wanted.counts));
  Call call = next_call(CallKind::gather, input, -1, ReduceOp::sum, root);
  call.count = total(wanted.counts);
  if (stream != nullptr && gathered_by_gpus(call, input, output, wanted.counts, *stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, input.type), input, output);
}

void Group::scatter_on(Stream* stream, ConstElements input, Elements output, int root) {
  check_peer(root, "scatter from");
  check_types(CallKind::scatter, input, output);
  if (rank() == root)
    check_count(CallKind::scatter, "the input", input.count(), output.count() * static_cast<std::size_t>(size()));
  const Call call = next_call(CallKind::scatter, output, -1, ReduceOp::sum, root);
  if (stream != nullptr && scattered_by_gpus(call, input, even(output.count()), output, *stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(asked(Collective::scatter, output.count(), root), output.type), input, output);
}

void Group::scatter_v_on(Stream* stream, ConstElements input, std::span<const std::size_t> counts, Elements output,
                         int root) {
  check_peer(root, "scatter from");
  check_types(CallKind::scatter, input, output);
  CollectiveCall wanted = asked(Collective::scatter, 0, root);
  wanted.counts = checked_counts(CallKind::scatter, counts, size());
  check_count(CallKind::scatter, "the output", output.count(), counts[static_cast<std::size_t>(rank())]);
  if (rank() == root) check_count(CallKind::scatter, "the input", input.count(), total(wanted.counts));
  Call call = next_call(CallKind::scatter, output, -1, ReduceOp::sum, root);
  call.count = total(wanted.counts);
  if (stream != nullptr && scattered_by_gpus(call, input, wanted.counts, output, *stream)) return;
  before_host_call(call, stream);
  run(call, schedule_for(wanted, output.type), input, output);
}

}  // namespace waywiser
