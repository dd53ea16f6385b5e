// Groups on the GPUs of this machine, one process a GPU: all_reduce, all_gather and all_to_all on a stream, eager and
// in a CUDA graph, beside NCCL; messages beside a bare peer copy. Every result is verified. One JSON object on standard
// output, a table on standard error. Usage: group_gpu_benchmark [RANKS [WAY...]]. With ways, these carry out
// collectives and messages of 4 to 256 MiB instead, with "symmetric" among them in symmetric windows; "" is the group's
// choice. WAYWISER_LIBNCCL names NCCL.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/collective/nccl/nccl_communicator.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

constexpr Bytes most = Bytes{512} << 20, most_of_one = Bytes{256} << 20;
constexpr Seconds patience = 30;

class Rank {
 public:
  explicit Rank(Group& group)
      : group_(group),
        platform_(*group.platform()),
        place_(gpu(group.rank())),
        stream_(platform_.open_stream(place_)),
        input_(platform_.allocate(place_, most, Allocation::gpu)),
        output_(platform_.allocate(place_, most, Allocation::gpu)),
        host_(platform_.allocate(host(0), most, Allocation::pinned)) {
    check_cuda(cudaSetDevice(group.rank()), "cudaSetDevice");
    check_cuda(cudaEventCreate(&begin_), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
    fill();
    group_.barrier(Mode::on(*stream_));
    group_.synchronize(*stream_);
    start_nccl();
    warm_up();
  }

  Json run() {
    for (const Bytes bytes : {Bytes{8}, Bytes{8} << 10, Bytes{64} << 10, Bytes{256} << 10, Bytes{1} << 20,
                              Bytes{4} << 20, Bytes{16} << 20, Bytes{64} << 20, most_of_one}) {
      collective(Collective::all_reduce, bytes);
      if (bytes <= (Bytes{16} << 20)) collective(Collective::all_gather, bytes);
      if (bytes <= (Bytes{16} << 20)) collective(Collective::all_to_all, bytes);
      shift(bytes);
      message(bytes);
    }
    with_exposed_output();
    return results();
  }

  Json by_ways(const std::vector<std::string>& ways) {
    std::vector<Window> windows;
    symmetric_ = std::ranges::find(ways, "symmetric") != ways.end();
    if (symmetric_)
      for (const Memory* each : {&input_, &output_}) windows.push_back(group_.expose(each->region(), true));
    for (const Bytes mib : {4, 8, 16, 32, 64, 256}) {
      for (const Collective operation : {Collective::all_gather, Collective::all_to_all, Collective::all_reduce,
                                         Collective::reduce_scatter, Collective::broadcast})
        long_collective(operation, mib << 20, ways);
      long_messages(mib << 20, ways);
    }
    group_.barrier();
    return results();
  }

 private:
  Json results() {
    return {{"ranks", group_.size()},
            {"why_staged", group_.why_staged()},
            {"nccl", nccl_ ? std::to_string(nccl_library().version()) : why_no_nccl_},
            {"rows", std::move(rows_)}};
  }
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_->native()); }
  Elements in(Bytes bytes) const { return {input_.region().slice(0, bytes), DataType::float32}; }
  Elements out(Bytes bytes) const { return {output_.region().slice(0, bytes), DataType::float32}; }
  float* values() const { return reinterpret_cast<float*>(host_.region().data); }
  static float value(int rank, Bytes i) { return static_cast<float>((i * 7 + static_cast<Bytes>(rank) * 13) % 101); }

  void fill() {
    for (Bytes i = 0; i < most / 4; ++i) values()[i] = value(group_.rank(), i);
    stream_->copy(input_.region(), host_.region().slice(0, most));
    stream_->synchronize(Deadline::in(patience));
  }

  void start_nccl() {
    why_no_nccl_ = nccl_library().why_not();
    std::int32_t can = why_no_nccl_.empty() ? 1 : 0, all = 0;
    group_.all_reduce(std::span<const std::int32_t>(&can, 1), std::span(&all, 1), ReduceOp::min);
    if (all == 0) return;
    NcclUniqueId id;
    if (group_.rank() == 0) nccl_library().check(nccl_library().functions().get_unique_id(&id), "ncclGetUniqueId");
    group_.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
    nccl_ = std::make_unique<NcclCommunicator>(id, group_.rank(), group_.size(), platform_.open_stream(place_), wait());
  }
  static NcclCommunicator::Waiter wait() {
    return [](const std::function<bool()>& done) {
      for (const Deadline deadline = Deadline::in(patience); !done();)
        if (deadline.passed()) throw Error(ErrorKind::timeout, "NCCL does not answer");
    };
  }

  void warm_up() {
    for (const Collective operation : {Collective::all_reduce, Collective::all_gather, Collective::all_to_all})
      for (const Bytes bytes : {Bytes{1024}, Bytes{64} << 20}) {
        if (operation != Collective::all_reduce && bytes > 1024) continue;
        enqueue(operation, bytes, false);
        if (nccl_) enqueue(operation, bytes, true);
      }
    group_.synchronize(*stream_);
  }

  void enqueue(Collective operation, Bytes bytes, bool by_nccl) {
    const auto ranks = static_cast<Bytes>(group_.size());
    const bool scatters = operation == Collective::all_to_all || operation == Collective::reduce_scatter;
    const bool spreads = operation == Collective::all_to_all || operation == Collective::all_gather;
    const Elements give = in(scatters ? bytes * ranks : bytes), take = out(spreads ? bytes * ranks : bytes);
    if (by_nccl) {
      CollectiveCall call;
      call.operation = operation;
      call.rank = group_.rank();
      call.ranks = group_.size();
      call.count = bytes / 4;
      return nccl_->enqueue(call, DataType::float32, ReduceOp::sum, give.region, take.region, *stream_, wait());
    }
    switch (operation) {
      case Collective::all_reduce: group_.all_reduce(give, take, ReduceOp::sum, Mode::on(*stream_)); return;
      case Collective::all_gather: group_.all_gather(give, take, Mode::on(*stream_)); return;
      case Collective::reduce_scatter: group_.reduce_scatter(give, take, ReduceOp::sum, Mode::on(*stream_)); return;
      case Collective::broadcast:
        group_.broadcast(group_.rank() == 0 && !symmetric_ ? give : take, 0, Mode::on(*stream_));
        return;
      default: group_.all_to_all(give, take, Mode::on(*stream_));
    }
  }

  // The slowest rank's microseconds for each of `times`.
  double all_ranks(double us) {
    double slowest = 0;
    group_.all_reduce(std::span<const double>(&us, 1), std::span(&slowest, 1), ReduceOp::max);
    return slowest;
  }

  // All of `times`, between two events, after the ranks have met on the GPUs.
  template <typename Enqueue>
  double on_events(Enqueue enqueue, int times) {
    std::vector<double> samples;
    for (int sample = 0; sample < 7; ++sample) {
      group_.barrier();
      group_.barrier(Mode::on(*stream_));
      check_cuda(cudaEventRecord(begin_, native()), "cudaEventRecord");
      enqueue();
      check_cuda(cudaEventRecord(end_, native()), "cudaEventRecord");
      group_.synchronize(*stream_);
      float ms = 0;
      check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
      samples.push_back(all_ranks(static_cast<double>(ms) * 1e3 / times));
    }
    std::ranges::sort(samples);
    return samples[samples.size() / 2];
  }

  template <typename Enqueue>
  double in_graph(Enqueue enqueue, int times) {
    check_cuda(cudaStreamBeginCapture(native(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < times; ++i) enqueue();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    check_cuda(cudaStreamEndCapture(native(), &graph), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&runnable, graph, 0), "cudaGraphInstantiate");
    const double us = on_events([&] { check_cuda(cudaGraphLaunch(runnable, native()), "cudaGraphLaunch"); }, times);
    check_cuda(cudaGraphExecDestroy(runnable), "cudaGraphExecDestroy");
    check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return us;
  }

  template <typename Enqueue>
  double eager(Enqueue enqueue, int times) {
    return on_events(
        [&] {
          for (int i = 0; i < times; ++i) enqueue();
        },
        times);
  }

  // One call and its end, as the host sees them.
  template <typename Call>
  double host_to_host(Call call) {
    std::vector<double> samples;
    for (int i = 0; i < 21; ++i) {
      group_.barrier();
      const Seconds start = now_seconds();
      call();
      samples.push_back(all_ranks((now_seconds() - start) * 1e6));
    }
    std::ranges::sort(samples);
    return samples[samples.size() / 2];
  }

  void clear_output() {
    check_cuda(cudaMemsetAsync(output_.region().data, 0xee, most, native()), "cudaMemsetAsync");
    if (symmetric_ && group_.rank() == 0) stream_->copy(output_.region(), input_.region());  // of a broadcast
    group_.synchronize(*stream_);
  }

  template <typename Expected>
  bool holds(Bytes bytes, Expected expected) {
    stream_->copy(host_.region().slice(0, bytes), output_.region().slice(0, bytes));
    group_.synchronize(*stream_);
    std::int32_t right = 1, all = 0;
    for (Bytes i = 0; i < bytes / 4 && right != 0; ++i) right = values()[i] == expected(i) ? 1 : 0;
    group_.all_reduce(std::span<const std::int32_t>(&right, 1), std::span(&all, 1), ReduceOp::min);
    return all == 1;
  }

  bool right(Collective operation, Bytes bytes) {
    const Bytes count = bytes / 4, ranks = static_cast<Bytes>(group_.size());
    if (operation == Collective::all_reduce || operation == Collective::reduce_scatter) {
      const Bytes begin = operation == Collective::all_reduce ? 0 : static_cast<Bytes>(group_.rank()) * count;
      return holds(bytes, [&](Bytes i) {
        float sum = 0;
        for (int rank = 0; rank < group_.size(); ++rank) sum += value(rank, begin + i);
        return sum;
      });
    }
    if (operation == Collective::broadcast)
      return holds(group_.rank() == 0 ? 0 : bytes, [](Bytes i) { return value(0, i); });
    const Bytes own = operation == Collective::all_to_all ? static_cast<Bytes>(group_.rank()) * count : 0;
    return holds(bytes * ranks, [&](Bytes i) { return value(static_cast<int>(i / count), own + i % count); });
  }

  void add(const std::string& operation, Bytes bytes, const char* how, const char* by, double us, bool verified) {
    if (group_.rank() == 0)
      std::fprintf(stderr, "%d GPUs %-20s %8s %-12s %-8s %10.2f us %8.1f GB/s%s\n", group_.size(), operation.c_str(),
                   format_bytes(bytes).c_str(), how, by, us, static_cast<double>(bytes) / us / 1e3,
                   verified ? "" : "  WRONG");
    rows_.push_back(
        {{"operation", operation}, {"bytes", bytes}, {"how", how}, {"by", by}, {"us", us}, {"verified", verified}});
  }

  void collective(Collective operation, Bytes bytes) {
    const int times = bytes <= (Bytes{1} << 20) ? 50 : 5;
    for (const bool by_nccl : {false, true}) {
      if (by_nccl && !nccl_) continue;
      const char* by = by_nccl ? "nccl" : "group";
      const auto once = [&] { enqueue(operation, bytes, by_nccl); };
      once();  // sets aside the memory that this size needs, which no captured call can
      clear_output();
      const double graph = in_graph(once, times);
      add(std::string(name(operation)), bytes, "graph", by, graph, right(operation, bytes));
      clear_output();
      const double us = eager(once, times);
      add(std::string(name(operation)), bytes, "eager", by, us, right(operation, bytes));
      const double whole = host_to_host([&] {
        once();
        stream_->synchronize(Deadline::in(patience));
      });
      add(std::string(name(operation)), bytes, "host to host", by, whole, true);
    }
    if (operation != Collective::all_reduce) return;
    const double call = host_to_host([&] { group_.all_reduce(in(bytes), out(bytes)); });
    add("all_reduce", bytes, "no stream", "group", call, right(operation, bytes));
  }

  void long_collective(Collective operation, Bytes bytes, std::vector<std::string> ways) {
    if (bytes * static_cast<Bytes>(group_.size()) > most) return;
    if (nccl_) ways.emplace_back("nccl");
    for (const std::string& way : ways) {
      const bool by_nccl = way == "nccl";
      if (!by_nccl) group_.set_algorithm(way);
      time_both_modes(
          std::string(name(operation)), bytes, way, [&] { enqueue(operation, bytes, by_nccl); },
          [&] { return right(operation, bytes); });
    }
    group_.set_algorithm("");
  }

  void long_messages(Bytes bytes, const std::vector<std::string>& ways) {
    const int before = before_me();
    for (const std::string& way : ways) {
      if (way.find("shot") != std::string::npos || way.starts_with("copy_engine") || way == "symmetric")
        continue;  // of collectives only
      group_.set_algorithm(way);
      time_both_modes(
          "both ways", bytes, way, [&] { shift_once(bytes); },
          [&] { return holds(bytes, [&](Bytes i) { return value(before, i); }); });
      time_both_modes("ping-pong", bytes, way, [&] { ping_pong_once(bytes); }, [&] { return sent(bytes); });
    }
    group_.set_algorithm("");
    add("message", bytes, "one copy", "cudaMemcpy", bare_copy(bytes), true);
  }

  template <typename Once, typename IsRight>
  void time_both_modes(const std::string& operation, Bytes bytes, const std::string& way, Once once, IsRight is_right) {
    constexpr int times = 5;
    const char* by = way.empty() ? "group" : way.c_str();
    try {
      once();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      return;
    }
    clear_output();
    const double graph = in_graph(once, times);
    add(operation, bytes, "graph", by, graph, is_right());
    clear_output();
    const double us = eager(once, times);
    add(operation, bytes, "eager", by, us, is_right());
  }

  // What needs no copy then.
  void with_exposed_output() {
    const Window window = group_.expose(output_.region());
    for (const Bytes bytes : {Bytes{64} << 10, Bytes{256} << 10, Bytes{1} << 20, Bytes{4} << 20, Bytes{16} << 20,
                              Bytes{64} << 20, most_of_one}) {
      const int times = bytes <= (Bytes{1} << 20) ? 50 : 5;
      const auto sum = [&] { enqueue(Collective::all_reduce, bytes, false); };
      clear_output();
      const double reduced = in_graph(sum, times);
      add("all_reduce", bytes, "graph, exposed", "group", reduced, right(Collective::all_reduce, bytes));
      clear_output();
      const int before = before_me();
      const double shifted = in_graph([&] { shift_once(bytes); }, times);
      add("ring shift", bytes, "graph, exposed", "group", shifted,
          holds(bytes, [&](Bytes i) { return value(before, i); }));
      clear_output();
      const double there_and_back = in_graph([&] { ping_pong_once(bytes); }, times);
      add("message", bytes, "graph, exposed", "group", there_and_back / 2, sent(bytes));
    }
    group_.barrier();
  }

  int before_me() const { return (group_.rank() + group_.size() - 1) % group_.size(); }
  void shift_once(Bytes bytes) {
    group_.sendrecv(in(bytes), (group_.rank() + 1) % group_.size(), out(bytes), before_me(), 0, Mode::on(*stream_));
  }
  void ping_pong_once(Bytes bytes) {
    if (group_.rank() > 1) return;
    const int other = 1 - group_.rank();
    if (group_.rank() == 0) group_.send(in(bytes), 1, 0, Mode::on(*stream_));
    group_.recv(out(bytes), other, 0, Mode::on(*stream_));
    if (group_.rank() == 1) group_.send(in(bytes), 0, 0, Mode::on(*stream_));
  }
  // What the two have sent each other has arrived.
  bool sent(Bytes bytes) {
    const bool takes_part = group_.rank() < 2;
    return holds(takes_part ? bytes : 0, [&](Bytes i) { return value(1 - group_.rank(), i); });
  }

  // Every rank to the next one.
  void shift(Bytes bytes) {
    const int next = (group_.rank() + 1) % group_.size(), before = before_me();
    const int times = bytes <= (Bytes{1} << 20) ? 50 : 5;
    const auto once = [&] { shift_once(bytes); };
    clear_output();
    const double graph = in_graph(once, times);
    const auto expected = [&](Bytes i) { return value(before, i); };
    add("ring shift", bytes, "graph", "group", graph, holds(bytes, expected));
    clear_output();
    const double us = eager(once, times);
    add("ring shift", bytes, "eager", "group", us, holds(bytes, expected));
    const double whole = host_to_host([&] {
      once();
      group_.synchronize(*stream_);
    });
    add("ring shift", bytes, "host to host", "group", whole, true);
    clear_output();
    const double call = host_to_host([&] { group_.sendrecv(in(bytes), next, out(bytes), before); });
    add("ring shift", bytes, "no stream", "group", call, holds(bytes, expected));
  }

  // From rank 0 to rank 1: complete at both, beside a bare peer copy into opened memory; and there and back in a graph.
  void message(Bytes bytes) {
    const int times = bytes <= (Bytes{1} << 20) ? 20 : 3;
    clear_output();
    const double there_and_back = in_graph([&] { ping_pong_once(bytes); }, times);
    add("message", bytes, "graph", "group", there_and_back / 2, sent(bytes));
    clear_output();
    const double whole = host_to_host([&] {
      if (group_.rank() == 0) group_.send(in(bytes), 1, 0, Mode::on(*stream_));
      if (group_.rank() == 1) group_.recv(out(bytes), 0, 0, Mode::on(*stream_));
      group_.synchronize(*stream_);
    });
    add("message", bytes, "host to host", "group", whole,
        holds(bytes, [&](Bytes i) { return group_.rank() == 1 ? value(0, i) : values()[i]; }));
    clear_output();
    const double call = host_to_host([&] {
      if (group_.rank() == 0) group_.send(in(bytes), 1);
      if (group_.rank() == 1) group_.recv(out(bytes), 0);
    });
    add("message", bytes, "no stream", "group", call,
        holds(bytes, [&](Bytes i) { return group_.rank() == 1 ? value(0, i) : values()[i]; }));
    add("message", bytes, "one copy", "cudaMemcpy", bare_copy(bytes), true);
  }

  double bare_copy(Bytes bytes) {
    std::vector<SharedRegion> all(static_cast<std::size_t>(group_.size()));
    const SharedRegion mine = platform_.share(output_.region());
    group_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    const Memory opened = group_.rank() == 0 ? platform_.open_shared(all[1], place_) : Memory();
    const Region there = opened ? opened.region().slice(all[1].offset, bytes) : Region{};
    return host_to_host([&] {
      if (group_.rank() != 0) return;
      stream_->copy(there, input_.region().slice(0, bytes));
      stream_->synchronize(Deadline::in(patience));
    });
  }

  Group& group_;
  Platform& platform_;
  Place place_;
  std::unique_ptr<Stream> stream_;
  Memory input_, output_, host_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::unique_ptr<NcclCommunicator> nccl_;
  std::string why_no_nccl_;
  bool symmetric_ = false;  // input and output lie in symmetric windows, and rank 0 broadcasts its output
  Json rows_ = Json::array();
};

int run_rank(int rank, int ranks, const std::string& job, const std::vector<std::string>& ways) {
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, ranks, job, {}, ""};
  options.platform = open_cuda_platform();
  Group group = Group::join(options);
  Rank mine(group);
  const Json result = ways.empty() ? mine.run() : mine.by_ways(ways);
  if (rank == 0) std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace waywiser

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 4;
  if (ranks < 2 || ranks > 8) {
    std::fputs("usage: group_gpu_benchmark [RANKS [WAY...]], 2 to 8 ranks\n", stderr);
    return 2;
  }
  const std::vector<std::string> ways(argv + std::min(argc, 2), argv + argc);
  const std::string job = "benchmark-" + std::to_string(::getpid());
  return waywiser::forked_ranks("group_gpu_benchmark", ranks,
                                [&](int rank) { return waywiser::run_rank(rank, ranks, job, ways); });
}
