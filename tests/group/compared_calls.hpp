#pragma once

// Calls on the memory of virtual GPUs, compared with the same call on the host.
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/twins.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/call.hpp"

namespace waywiser {

// One call on the arrays of one kind of memory.
inline void call(Group& group, Collective operation, ReduceOp op, ConstElements in, Elements out, Stream* stream) {
  const Mode mode = stream != nullptr ? Mode::on(*stream) : Mode::wait;
  switch (operation) {
    case Collective::all_reduce: group.all_reduce(in, out, op, mode); return;
    case Collective::reduce_scatter: group.reduce_scatter(in, out, op, mode); return;
    case Collective::all_gather: group.all_gather(in, out, mode); return;
    case Collective::all_to_all: group.all_to_all(in, out, mode); return;
    case Collective::reduce: group.reduce(in, out, op, 1, mode); return;
    default: group.broadcast(out, 1, mode);
  }
}

inline std::size_t blocks(Collective operation, bool of_input, int ranks) {
  const bool in = operation == Collective::reduce_scatter || operation == Collective::all_to_all;
  const bool out = operation == Collective::all_gather || operation == Collective::all_to_all;
  return (of_input ? in : out) ? static_cast<std::size_t>(ranks) : 1;
}

inline void compare(Group& group, Collective operation, DataType type, ReduceOp op, std::size_t count, Stream* stream) {
  Twins in(group, type, count * blocks(operation, true, group.size()), group.rank());
  Twins out(group, type, count * blocks(operation, false, group.size()), group.rank() + 1);
  call(group, operation, op, in.gpu_elements(), out.gpu_elements(), stream);
  if (stream != nullptr) group.synchronize(*stream);
  call(group, operation, op, in.host_elements(), out.host_elements(), nullptr);
  require_that(in.equal() && out.equal(), std::string(name(operation)) + " of " + std::string(name(type)) + ", " +
                                              std::string(name(op)) + ", as on the host");
}

constexpr Collective long_operations[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                          Collective::all_to_all, Collective::broadcast};

// Calls f(operation, type, op, turn) for each operation of long arrays with each type and each sum that it has.
template <typename Function>
inline void each_long_call(Function f) {
  int turn = 0;
  for (const Collective operation : long_operations)
    for (int type = 0; type < data_types; ++type)
      for (int op = 0; op < reduce_ops; ++op, ++turn) {
        const auto as = static_cast<DataType>(type);
        const auto by = static_cast<ReduceOp>(op);
        const bool reduces = operation == Collective::all_reduce || operation == Collective::reduce_scatter;
        if (has_reduction(as, by) && is_arithmetic(by) && (reduces || op == 0)) f(operation, as, by, turn);
      }
}

constexpr Collective twin_operations[] = {Collective::all_reduce, Collective::reduce,     Collective::reduce_scatter,
                                          Collective::all_gather, Collective::all_to_all, Collective::broadcast};

inline void compare_all(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  int turn = 0;
  for (const Collective operation : twin_operations)
    for (int type = 0; type < data_types; ++type) {
      const bool reduces = operation == Collective::all_reduce || operation == Collective::reduce ||
                           operation == Collective::reduce_scatter;
      for (int op = 0; op < (reduces ? reduce_ops : 1); ++op, ++turn) {
        if (!has_reduction(static_cast<DataType>(type), static_cast<ReduceOp>(op))) continue;
        constexpr std::size_t counts[] = {5, 300, 1};
        compare(group, operation, static_cast<DataType>(type), static_cast<ReduceOp>(op), counts[turn % 3],
                turn % 2 == 0 ? stream.get() : nullptr);
      }
    }
  group.barrier(Mode::on(*stream));
  group.synchronize(*stream);
}

// Messages on streams: long and short, in both directions at once, and more than there are slots.
inline void exchange_on_stream(Group& group, std::size_t count, int times) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  for (int i = 0; i < times; ++i) {
    Twins give(group, DataType::int16, count, group.rank() + i), take(group, DataType::int16, count, 7);
    group.sendrecv(give.gpu_elements(), next, take.gpu_elements(), before, 0, Mode::on(*stream));
    group.sendrecv(give.host_elements(), next, take.host_elements(), before);
    group.synchronize(*stream);
    const bool equal = take.equal();
    require_that(equal, "message " + std::to_string(i) + " of " + std::to_string(count) + take.difference());
  }
}

// Each rank exchanges with both neighbours on a ring and with itself; of two ranks, each is both neighbours of the
// other. Tags match the parts, in another order than that of the list.
inline void exchange_with_neighbors(Group& group, std::size_t count) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const int ranks = group.size(), above = (group.rank() + 1) % ranks, below = (group.rank() + ranks - 1) % ranks;
  struct Side {
    int peer, give_tag, take_tag;
    std::size_t given, taken;
  };
  const Side sides[] = {{below, 6, 5, 0, 3},
                        {above, 5, 6, 3, 0},
                        {below, 2, 1, count + 13, count},
                        {above, 1, 2, count, count + 13},
                        {group.rank(), 4, 4, 77, 77}};
  std::vector<Twins> gives, takes;
  std::vector<Exchange> on_gpu, on_host;
  for (const Side& side : sides) {
    gives.emplace_back(group, DataType::int32, side.given, 10 * group.rank() + side.give_tag);
    takes.emplace_back(group, DataType::int32, side.taken, 7);
  }
  for (std::size_t i = 0; i < gives.size(); ++i) {
    const Side& side = sides[i];
    on_gpu.push_back({side.peer, gives[i].gpu_elements(), takes[i].gpu_elements(), side.give_tag, side.take_tag});
    on_host.push_back({side.peer, gives[i].host_elements(), takes[i].host_elements(), side.give_tag, side.take_tag});
  }
  group.neighbor_exchange(on_gpu, Mode::on(*stream));
  group.synchronize(*stream);
  group.neighbor_exchange(on_host);
  for (Twins& each : takes) require_that(each.equal(), "neighbor_exchange as on the host");
}

// The call on a stream of the GPU and the same call on the host.
template <typename OnStream, typename OnHost>
inline void compare_blocks(Group& group, std::size_t given, std::size_t taken, const std::string& what, Stream& stream,
                           OnStream on_stream, OnHost on_host) {
  Twins in(group, DataType::int32, given, group.rank());
  Twins out(group, DataType::int32, taken, group.rank() + 1);
  on_stream(in.gpu_elements(), out.gpu_elements());
  group.synchronize(stream);
  on_host(in.host_elements(), out.host_elements());
  require_that(in.equal() && out.equal(), what + " as on the host");
}

inline void blocks_of_all_sizes(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const auto ranks = static_cast<std::size_t>(group.size()), me = static_cast<std::size_t>(group.rank());
  const std::size_t sizes[] = {3, 70001, 0, 1200};
  std::vector<std::size_t> counts, give, take;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    counts.push_back(sizes[rank % 4]);
    give.push_back((3 * me + 5 * rank) % 7 * 100);
    take.push_back((3 * rank + 5 * me) % 7 * 100);
  }
  const auto sum = [](const std::vector<std::size_t>& all) { return std::accumulate(all.begin(), all.end(), 0ul); };
  compare_blocks(
      group, counts[me], sum(counts), "all_gather_v", *stream,
      [&](auto in, auto out) { group.all_gather_v(in, out, counts, Mode::on(*stream)); },
      [&](auto in, auto out) { group.all_gather_v(in, out, counts); });
  compare_blocks(
      group, sum(give), sum(take), "all_to_all_v", *stream,
      [&](auto in, auto out) { group.all_to_all_v(in, give, out, take, Mode::on(*stream)); },
      [&](auto in, auto out) { group.all_to_all_v(in, give, out, take); });
  for (const int root : {0, group.size() - 1}) {
    compare_blocks(
        group, counts[me], sum(counts), "gather_v", *stream,
        [&](auto in, auto out) { group.gather_v(in, out, counts, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.gather_v(in, out, counts, root); });
    compare_blocks(
        group, sum(counts), counts[me], "scatter_v", *stream,
        [&](auto in, auto out) { group.scatter_v(in, counts, out, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.scatter_v(in, counts, out, root); });
    compare_blocks(
        group, 500, 500 * ranks, "gather", *stream,
        [&](auto in, auto out) { group.gather(in, out, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.gather(in, out, root); });
    compare_blocks(
        group, 500 * ranks, 500, "scatter", *stream,
        [&](auto in, auto out) { group.scatter(in, out, root, Mode::on(*stream)); },
        [&](auto in, auto out) { group.scatter(in, out, root); });
  }
}

}  // namespace waywiser
