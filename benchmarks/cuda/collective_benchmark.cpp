// Times the fused collectives on 2 and 4 GPUs of this machine, one process, beside NCCL (libnccl.so.2 opened at run
// time: --nccl PATH): graphs of 50 operations, and eager launches. Every result is verified. One JSON object on
// standard output, times in microseconds an operation; a table on standard error. --shapes: several grids. --exposed:
// outputs that the others may store into.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "waywiser/base/dynamic_library.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/collective/fused/fused_works.hpp"
#include "waywiser/device/cuda/check.hpp"

namespace waywiser {
namespace {

constexpr int operations_in_graph = 50;
constexpr int samples = 11;

// What is used of NCCL's C interface.
struct Nccl {
  using Comm = void*;
  int (*init_all)(Comm*, int, const int*);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*all_gather)(const void*, void*, std::size_t, int, Comm, cudaStream_t);
  int (*reduce_scatter)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*broadcast)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*send)(const void*, std::size_t, int, int, Comm, cudaStream_t);
  int (*receive)(void*, std::size_t, int, int, Comm, cudaStream_t);
};
constexpr int nccl_float = 7, nccl_sum = 0;

void check_nccl(int result, const char* what) {
  if (result != 0) throw Error(ErrorKind::device, std::string(what) + ": NCCL error " + std::to_string(result));
}

// One rank: a GPU, its stream and buffers of floats.
struct Rank {
  int gpu = 0;
  std::unique_ptr<Stream> stream;
  Memory landing;
  std::unique_ptr<FusedCollective> fused;
  Memory input, output, host;
  Nccl::Comm comm = nullptr;
  cudaGraphExec_t graph = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;

  cudaStream_t native() const { return static_cast<cudaStream_t>(stream->native()); }
};

struct Setting {
  Collective operation;
  Bytes block;
  const fused::KernelShape* shape;  // nullptr: NCCL
};

class Bench {
 public:
  Bench(Platform& platform, int ranks, Bytes most, const Nccl* nccl, bool exposed)
      : platform_(platform), nccl_(nccl), most_(most), gate_(platform.allocate(host(0), 64, Allocation::pinned)) {
    std::memset(gate_.region().data, 0, 64);
    for (int rank = 0; rank < ranks; ++rank) add_rank(rank, ranks);
    std::vector<Region> landings, outputs;
    for (const Rank& rank : ranks_) {
      landings.push_back(rank.fused->landing());
      outputs.push_back(rank.output.region());
    }
    for (const Rank& rank : ranks_) {
      rank.fused->connect(landings);
      if (exposed) rank.fused->exposed()->expose(1, outputs, *rank.stream);
    }
    if (nccl_ == nullptr) return;
    std::vector<Nccl::Comm> comms(ranks_.size());
    check_nccl(nccl_->init_all(comms.data(), ranks, nullptr), "ncclCommInitAll");
    for (std::size_t i = 0; i < comms.size(); ++i) ranks_[i].comm = comms[i];
  }

  CollectiveCall call(const Setting& setting, int rank) const {
    CollectiveCall call;
    call.operation = setting.operation;
    call.rank = rank;
    call.ranks = static_cast<int>(ranks_.size());
    call.count = setting.block / 4;
    return call;
  }

  // Microseconds an operation; the result of the last one is verified. Less than 0: wrong.
  double graph_time(const Setting& setting) {
    clear_outputs();
    capture(setting);
    std::vector<double> times;
    for (int i = 0; i < samples + 2; ++i) {
      const double time =
          one_sample([](Rank& rank) { check_cuda(cudaGraphLaunch(rank.graph, rank.native()), "graph"); });
      if (i >= 2) times.push_back(time / operations_in_graph);
    }
    for (Rank& rank : ranks_) check_cuda(cudaGraphExecDestroy(rank.graph), "cudaGraphExecDestroy");
    return verified(setting) ? median(times) : -1;
  }

  // All ranks in turn, from one host thread: what a program without graphs sees.
  double eager_time(const Setting& setting) {
    clear_outputs();
    std::vector<double> times;
    for (int i = 0; i < samples; ++i) {
      synchronize();
      const Seconds start = now_seconds();
      for (int k = 0; k < operations_in_graph; ++k) enqueue_all(setting);
      synchronize();
      times.push_back((now_seconds() - start) * 1e6 / operations_in_graph);
    }
    return verified(setting) ? median(times) : -1;
  }

 private:
  static double median(std::vector<double> times) {
    std::ranges::sort(times);
    return times[times.size() / 2];
  }

  void add_rank(int rank, int ranks) {
    Rank one;
    one.gpu = rank;
    one.stream = platform_.open_stream(gpu(rank));
    for (int peer = 0; peer < ranks; ++peer)
      if (peer != rank) platform_.set_peer_access(rank, peer, true);
    FusedOptions options;
    options.deadline = 2;
    one.landing = platform_.allocate(gpu(rank), FusedCollective::bytes_for(ranks, options), Allocation::gpu);
    one.fused = std::make_unique<FusedCollective>(platform_, *one.stream, rank, ranks, options, one.landing.region());
    one.input = platform_.allocate(gpu(rank), most_, Allocation::gpu);
    one.output = platform_.allocate(gpu(rank), most_, Allocation::gpu);
    one.host = platform_.allocate(host(0), most_, Allocation::pinned);
    auto* values = reinterpret_cast<float*>(one.host.region().data);
    for (Bytes i = 0; i < most_ / 4; ++i) values[i] = static_cast<float>(value(rank, i));
    one.stream->copy(one.input.region().slice(0, most_), one.host.region().slice(0, most_));
    one.stream->synchronize(Deadline::in(20));
    check_cuda(cudaSetDevice(rank), "cudaSetDevice");
    check_cuda(cudaEventCreate(&one.begin), "cudaEventCreate");
    check_cuda(cudaEventCreate(&one.end), "cudaEventCreate");
    ranks_.push_back(std::move(one));
  }

  static int value(int rank, Bytes i) { return static_cast<int>((i * 7 + static_cast<Bytes>(rank) * 13) % 101); }

  void clear_outputs() {
    for (Rank& rank : ranks_) {
      check_cuda(cudaSetDevice(rank.gpu), "cudaSetDevice");
      check_cuda(cudaMemsetAsync(rank.output.region().data, 0xee, most_, rank.native()), "cudaMemsetAsync");
    }
    synchronize();
  }

  void synchronize() {
    for (Rank& rank : ranks_) rank.fused->synchronize(*rank.stream, Deadline::in(20));
  }

  // All GPUs wait for a flag in host memory until everything is enqueued.
  template <typename Launch>
  double one_sample(Launch launch) {
    ++gate_value_;
    for (Rank& rank : ranks_) rank.stream->wait_value(gate_.region().slice(0, 8), gate_value_);
    for (Rank& rank : ranks_) {
      check_cuda(cudaSetDevice(rank.gpu), "cudaSetDevice");
      check_cuda(cudaEventRecord(rank.begin, rank.native()), "cudaEventRecord");
      launch(rank);
      check_cuda(cudaEventRecord(rank.end, rank.native()), "cudaEventRecord");
    }
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(gate_.region().data)).store(gate_value_);
    synchronize();
    float most = 0;
    for (Rank& rank : ranks_) {
      float ms = 0;
      check_cuda(cudaEventElapsedTime(&ms, rank.begin, rank.end), "cudaEventElapsedTime");
      most = std::max(most, ms);
    }
    return static_cast<double>(most) * 1e3;
  }

  void capture(const Setting& setting) {
    for (Rank& rank : ranks_)
      check_cuda(cudaStreamBeginCapture(rank.native(), cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    for (int k = 0; k < operations_in_graph; ++k) enqueue_all(setting);
    for (Rank& rank : ranks_) {
      check_cuda(cudaSetDevice(rank.gpu), "cudaSetDevice");
      cudaGraph_t graph = nullptr;
      check_cuda(cudaStreamEndCapture(rank.native(), &graph), "cudaStreamEndCapture");
      check_cuda(cudaGraphInstantiate(&rank.graph, graph, 0), "cudaGraphInstantiate");
      check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }
  }

  void enqueue_all(const Setting& setting) {
    if (setting.shape == nullptr) check_nccl(nccl_->group_start(), "ncclGroupStart");
    for (Rank& rank : ranks_) {
      if (setting.shape != nullptr)
        rank.fused->enqueue(call(setting, rank.gpu), DataType::float32, ReduceOp::sum, rank.input.region(),
                            rank.output.region(), *rank.stream, *setting.shape);
      else
        enqueue_nccl(rank, setting);
    }
    if (setting.shape == nullptr) check_nccl(nccl_->group_end(), "ncclGroupEnd");
  }

  void enqueue_nccl(Rank& rank, const Setting& setting) {
    const std::size_t count = setting.block / 4;
    const std::byte* in = rank.input.region().data;
    std::byte* out = rank.output.region().data;
    const cudaStream_t stream = rank.native();
    switch (setting.operation) {
      case Collective::all_reduce:
        return check_nccl(nccl_->all_reduce(in, out, count, nccl_float, nccl_sum, rank.comm, stream), "ncclAllReduce");
      case Collective::all_gather:
        return check_nccl(nccl_->all_gather(in, out, count, nccl_float, rank.comm, stream), "ncclAllGather");
      case Collective::reduce_scatter:
        return check_nccl(nccl_->reduce_scatter(in, out, count, nccl_float, nccl_sum, rank.comm, stream),
                          "ncclReduceScatter");
      case Collective::broadcast:
        return check_nccl(nccl_->broadcast(in, out, count, nccl_float, 0, rank.comm, stream), "ncclBroadcast");
      default: break;
    }
    for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
      check_nccl(nccl_->send(in + peer * setting.block, count, nccl_float, static_cast<int>(peer), rank.comm, stream),
                 "ncclSend");
      check_nccl(
          nccl_->receive(out + peer * setting.block, count, nccl_float, static_cast<int>(peer), rank.comm, stream),
          "ncclRecv");
    }
  }

  bool verified(const Setting& setting) {
    const Bytes count = setting.block / 4, n = ranks_.size();
    const bool all = setting.operation == Collective::all_gather || setting.operation == Collective::all_to_all;
    for (Rank& rank : ranks_) {
      const Bytes bytes = setting.block * (all ? n : 1);
      rank.stream->copy(rank.host.region().slice(0, bytes), rank.output.region().slice(0, bytes));
      rank.stream->synchronize(Deadline::in(20));
      const auto* found = reinterpret_cast<const float*>(rank.host.region().data);
      for (Bytes i = 0; i < count * (all ? n : 1); ++i)
        if (found[i] != static_cast<float>(expected(setting.operation, rank.gpu, i, count))) return false;
    }
    return true;
  }

  int expected(Collective operation, int rank, Bytes i, Bytes count) const {
    const auto own = static_cast<Bytes>(rank);
    if (operation == Collective::broadcast) return value(0, i);
    if (operation == Collective::all_gather) return value(static_cast<int>(i / count), i % count);
    if (operation == Collective::all_to_all) return value(static_cast<int>(i / count), own * count + i % count);
    int sum = 0;
    for (std::size_t from = 0; from < ranks_.size(); ++from)
      sum += value(static_cast<int>(from), operation == Collective::reduce_scatter ? own * count + i : i);
    return sum;
  }

  Platform& platform_;
  const Nccl* nccl_;
  Bytes most_;
  Memory gate_;
  std::uint64_t gate_value_ = 0;
  std::vector<Rank> ranks_;
};

class Report {
 public:
  void add(Json row, double us) {
    row["us"] = us < 0 ? Json() : Json(us);
    row["verified"] = us >= 0;
    std::fprintf(stderr, "%d GPUs %-15s %8s %-6s %-9s %4d x %-4d %9.2f us%s\n", row["gpus"].get<int>(),
                 row["operation"].get<std::string>().c_str(), format_bytes(row["bytes"].get<Bytes>()).c_str(),
                 row["launch"].get<std::string>().c_str(), row["by"].get<std::string>().c_str(),
                 row["blocks"].get<int>(), row["threads"].get<int>(), us, us < 0 ? "  WRONG" : "");
    rows_.push_back(std::move(row));
  }
  Json take() { return std::move(rows_); }

 private:
  Json rows_ = Json::array();
};

Json row_of(int gpus, const Setting& setting, const char* launch) {
  const bool ours = setting.shape != nullptr;
  return {{"gpus", gpus},
          {"operation", name(setting.operation)},
          {"bytes", setting.block},
          {"launch", launch},
          {"by", ours ? std::string(fused::name(setting.shape->method)) : "nccl"},
          {"blocks", ours ? setting.shape->blocks : 0},
          {"threads", ours ? setting.shape->threads : 0}};
}

// The default, and others around it. What a rank sends to another, or all send to all in an all_reduce.
std::vector<fused::KernelShape> shapes_for(const fused::KernelShape& shape, bool several, const Setting& setting,
                                           int gpus) {
  std::vector<fused::KernelShape> shapes{shape};
  if (!several || setting.operation == Collective::broadcast) return shapes;
  const Bytes bytes = setting.block;
  if (bytes <= (Bytes{256} << 10))
    for (const unsigned threads : {32u, 64u, 128u, 256u, 512u})
      for (const unsigned units : {1u, 2u})
        if (const Bytes each = Bytes{8} * units * threads, blocks = (bytes + each - 1) / each;
            blocks <= 264 && (blocks > 1 || units == 1))
          shapes.push_back({fused::Method::ll, static_cast<unsigned>(blocks), threads});
  for (const unsigned threads : {256u, 512u})
    for (const unsigned blocks : {16u, 32u, 64u, 96u, 128u, 192u, 256u, 384u, 512u}) {
      if (bytes < (Bytes{64} << 10) || Bytes{blocks} * threads * 8 > bytes || blocks * threads > 512 * 264) continue;
      if (bytes <= (Bytes{4} << 20)) shapes.push_back({fused::Method::one_shot, blocks, threads});
      if (setting.operation != Collective::all_reduce) continue;
      if (gpus > 2 || bytes >= (Bytes{1} << 20)) shapes.push_back({fused::Method::two_shot, blocks, threads});
    }
  const Bytes most = setting.operation == Collective::all_reduce ? Bytes{16} << 20 : Bytes{1} << 20;
  for (const unsigned threads : {32u, 64u, 128u, 256u, 512u})
    for (const unsigned blocks : {8u, 16u, 32u, 64u, 96u, 128u, 192u, 256u, 384u, 512u}) {
      const Bytes once = Bytes{blocks} * threads * 15;  // with one pair of lines for each 16 threads
      if (bytes > most || blocks * threads > 512 * 264) continue;
      if (once <= bytes * 3 / 2 && once * 8 >= bytes) shapes.push_back({fused::Method::ll128, blocks, threads});
      const Bytes part = bytes / static_cast<Bytes>(gpus);
      if (setting.operation == Collective::all_reduce && once <= part * 3 / 2 && once * 8 >= part)
        shapes.push_back({fused::Method::two_shot_ll128, blocks, threads});
    }
  return shapes;
}

void run(Platform& platform, int gpus, const Nccl* nccl, bool several, bool exposed, Report& report) {
  Bench bench(platform, gpus, Bytes{64} << 20, nccl, exposed);
  for (const Collective operation : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                     Collective::all_to_all, Collective::broadcast})
    for (const Bytes block : {Bytes{8}, Bytes{8} << 10, Bytes{64} << 10, Bytes{256} << 10, Bytes{1} << 20,
                              Bytes{4} << 20, Bytes{16} << 20}) {
      if (operation != Collective::all_reduce && block > (Bytes{4} << 20)) continue;
      Setting setting{operation, block, nullptr};
      if (nccl != nullptr) report.add(row_of(gpus, setting, "graph"), bench.graph_time(setting));
      const CollectiveCall call = bench.call(setting, 0);
      const fused::KernelShape first =
          fused::default_shape(call, block, fused::default_method(call, block, true), platform.multiprocessors(0));
      for (const fused::KernelShape& shape : shapes_for(first, several, setting, gpus)) {
        setting.shape = &shape;
        report.add(row_of(gpus, setting, "graph"), bench.graph_time(setting));
      }
      if (operation != Collective::all_reduce) continue;
      setting.shape = &first;
      report.add(row_of(gpus, setting, "eager"), bench.eager_time(setting));
      setting.shape = nullptr;
      if (nccl != nullptr) report.add(row_of(gpus, setting, "eager"), bench.eager_time(setting));
    }
}

template <typename Function>
void find(const DynamicLibrary& library, const char* symbol, Function*& function) {
  function = library.find<Function>(symbol);
  if (function == nullptr) throw Error(ErrorKind::unavailable, std::string("NCCL without ") + symbol);
}

Nccl find_nccl(const DynamicLibrary& library) {
  Nccl nccl{};
  find(library, "ncclCommInitAll", nccl.init_all);
  find(library, "ncclGroupStart", nccl.group_start);
  find(library, "ncclGroupEnd", nccl.group_end);
  find(library, "ncclAllReduce", nccl.all_reduce);
  find(library, "ncclAllGather", nccl.all_gather);
  find(library, "ncclReduceScatter", nccl.reduce_scatter);
  find(library, "ncclBroadcast", nccl.broadcast);
  find(library, "ncclSend", nccl.send);
  find(library, "ncclRecv", nccl.receive);
  return nccl;
}

int run(int argc, char** argv) {
  std::vector<std::string> names{"libnccl.so.2"};
  bool several = false, exposed = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--shapes") == 0) several = true;
    if (std::strcmp(argv[i], "--exposed") == 0) exposed = true;
    if (std::strcmp(argv[i], "--nccl") == 0 && i + 1 < argc) names.insert(names.begin(), argv[++i]);
  }
  const DynamicLibrary library(names);
  Nccl nccl{};
  if (library.loaded()) nccl = find_nccl(library);
  const auto platform = open_cuda_platform();
  Report report;
  Json result{{"nccl", library.loaded() ? library.name() : library.why_not()},
              {"operations_in_graph", operations_in_graph},
              {"statistic", "median, slowest GPU"},
              {"exposed", exposed}};
  int status = 0;
  try {
    for (const int gpus : {4, 2})
      if (gpus <= platform->gpu_count())
        run(*platform, gpus, library.loaded() ? &nccl : nullptr, several, exposed, report);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_benchmark: %s\n", error.what());
    result["stopped_by"] = error.what();
    status = 1;
  }
  result["rows"] = report.take();
  std::printf("%s\n", result.dump(1).c_str());
  return status;
}

}  // namespace
}  // namespace waywiser

int main(int argc, char** argv) {
  try {
    return waywiser::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "collective_benchmark: %s\n", error.what());
    return 1;
  }
}
