// One-sided communication inside kernels of two ranks on two GPUs: put and signal, by stores and by bulk asynchronous
// copies, packets (LL), lines (LL128), put bandwidth, p, fetch_add, barrier. All rounds of a sample are one kernel, and
// what comes is compared in the kernel: after each round in a first run, after the last one in the samples. One JSON
// object on standard output, a table on standard error.
//
// One way: half a round of a ping-pong. Where several blocks put by `put_with_signal`, each adds to one signal, and
// every block of the other rank waits for all of them; by `put_packets` and `put_lines` each block, warp or thread that
// makes the call waits for its own part alone, in the rows "one way, all" for those of all blocks of its rank. The rows
// of one block are the table from which the thresholds of messages follow.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/heap/heap.hpp"
#include "waywiser/one_sided.cuh"

namespace waywiser::one_sided {
namespace {

constexpr unsigned most_threads = 1024, most_blocks = 132;
constexpr Bytes most = Bytes{256} << 20, most_packed = Bytes{1} << 20;

// What the blocks of one rank have measured and found.
struct Times {
  std::uint64_t begin[most_blocks], end[most_blocks];
  std::uint64_t wrong;
};

// A heap: times, signals of 64 bytes each, what is put, what comes, packets.
constexpr Bytes times_at = 0, signals_at = 8192, signals = 1024, given_at = Bytes{1} << 20, taken_at = given_at + most,
                packets_at = taken_at + most, lines_at = packets_at + 2 * most_packed,
                heap_bytes = lines_at + 4 * most_packed;

// put and bulk are put_with_signal.
enum class Form { put, bulk, packets, lines };
constexpr const char* form_names[] = {"put_with_signal", "bulk", "put_packets", "put_lines"};
constexpr bool has_signal(Form form) { return form == Form::put || form == Form::bulk; }
constexpr unsigned staging_bytes = 46 << 10;

struct Task {
  TeamTerms team;
  Bytes bytes = 0;
  std::uint64_t rounds = 0, first = 1;  // the number of the first round: of all launches with one signal
  std::uint64_t signal = 0;             // its index
  std::uint64_t goal = 0;               // put_often: its value when all has come
  bool each_round = false;              // new values in each round, which are compared
  bool all = false;                     // an answer is sent when all blocks have their parts
  std::uint64_t before = 0;             // rounds of `all` before this launch
};

using Ranks = OneSided<CudaHeapBlock>;
template <Form form>
using BlockOf = std::conditional_t<form == Form::bulk, CudaStagedBlock, CudaHeapBlock>;
template <Form form>
__device__ BlockOf<form> block_of() {
  if constexpr (form == Form::bulk) {
    __shared__ alignas(128) std::byte staging[staging_bytes];
    return {staging, staging_bytes};
  } else {
    return {};
  }
}

__device__ std::uint64_t value_of(int rank, std::uint64_t i, std::uint64_t round) {
  return i * 0x9e3779b97f4a7c15u + round * 1000003 + static_cast<unsigned>(rank);
}
// The first word of a block, in whole vectors of 16 bytes if there are any.
__device__ std::uint64_t part(Bytes bytes, unsigned block) {
  return bytes < 16 ? bytes / 8 * block / gridDim.x : bytes / 16 * block / gridDim.x * 2;
}
__device__ void fill(std::uint64_t* words, std::uint64_t begin, std::uint64_t end, int rank, std::uint64_t round) {
  for (std::uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x) words[i] = value_of(rank, i, round);
  __syncthreads();
}
__device__ void compare(Times& times, const std::uint64_t* words, std::uint64_t begin, std::uint64_t end, int rank,
                        std::uint64_t round) {
  for (std::uint64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
    if (words[i] != value_of(rank, i, round)) atomicAdd(reinterpret_cast<unsigned long long*>(&times.wrong), 1ull);
  __syncthreads();
}
template <typename Gpu>
__device__ void note(const OneSided<Gpu>& ranks, std::uint64_t* times) {
  __syncthreads();
  if (threadIdx.x == 0) times[blockIdx.x] = ranks.gpu().nanoseconds();
}

// Until all blocks of this rank are here so often. They run at the same time.
template <typename Gpu>
__device__ void meet_all(const OneSided<Gpu>& ranks, std::uint64_t* counter, std::uint64_t times) {
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(counter) : "memory");
    ranks.wait_until(counter, Comparison::ge, times * gridDim.x, ranks.rank());
  }
  __syncthreads();
}

// The first round is not timed: the kernel of the other rank may not have begun.
template <Form form, Scope scope>
__global__ void __launch_bounds__(most_threads)
    ping_pong(const __grid_constant__ HeapTerms terms, const __grid_constant__ Task task) {
  auto block = block_of<form>();
  const OneSided<BlockOf<form>> ranks(block, terms);
  const int other = 1 - ranks.rank();
  auto& times = *ranks.template at<Times>(times_at);
  auto* signal = ranks.template at<std::uint64_t>(signals_at + task.signal * 64);
  auto *given = ranks.template at<std::uint64_t>(given_at), *taken = ranks.template at<std::uint64_t>(taken_at);
  auto* packets = ranks.template at<block::LlPacket>(packets_at);
  constexpr unsigned threads = scope == Scope::thread ? 1 : 32;
  const unsigned units = scope == Scope::block ? 1 : blockDim.x / threads;
  const std::uint64_t begin = part(task.bytes, blockIdx.x), end = part(task.bytes, blockIdx.x + 1);
  const unsigned unit = scope == Scope::block ? 0 : threadIdx.x / threads;
  const std::uint64_t mine = begin + (end - begin) * unit / units;
  const std::uint64_t count = begin + (end - begin) * (unit + 1) / units - mine;
  const std::uint64_t of_unit = line_bytes_of(task.bytes / (gridDim.x * units) + 32);
  auto* lines = ranks.template at<block::Ll128Slot>(lines_at + (std::uint64_t{blockIdx.x} * units + unit) * of_unit);
  const auto put = [&](std::uint64_t round) {
    if constexpr (form == Form::packets)
      put_packets<scope>(ranks, packets + mine, given + mine, count, round, other);
    else if constexpr (form == Form::lines)
      put_lines<scope>(ranks, lines, given + mine, count, round, other);
    else
      ranks.template put_with_signal<scope>(taken + mine, given + mine, count, signal, gridDim.x == 1 ? round : 1,
                                            gridDim.x == 1 ? SignalOp::set : SignalOp::add, other);
  };
  const auto wait = [&](std::uint64_t round) {
    if constexpr (form == Form::packets)
      wait_packets<scope>(ranks, taken + mine, packets + mine, count, round, other);
    else if constexpr (form == Form::lines)
      wait_lines<scope>(ranks, taken + mine, lines, count, round, other);
    else
      ranks.template wait_until<scope>(signal, Comparison::ge, round * gridDim.x, other);
    if (task.all) meet_all(ranks, signal + 1, task.before + round - task.first + 1);
    if (!task.each_round) return;
    __syncthreads();
    compare(times, taken, begin, end, other, round);
  };
  const std::uint64_t last = task.first + task.rounds;
  fill(given, begin, end, ranks.rank(), last);
  for (std::uint64_t round = task.first; round <= last; ++round) {
    if (task.each_round) fill(given, begin, end, ranks.rank(), round);
    if (ranks.rank() == 0) put(round);
    wait(round);
    if (ranks.rank() == 1) put(round);
    if (round == task.first) note(ranks, times.begin);
  }
  note(ranks, times.end);
  compare(times, taken, begin, end, other, last);
}

// Rank 0 puts all of it `rounds` times; rank 1 has one block, which waits for all and answers.
template <Form form>
__global__ void __launch_bounds__(most_threads)
    put_often(const __grid_constant__ HeapTerms terms, const __grid_constant__ Task task) {
  auto block = block_of<form>();
  const OneSided<BlockOf<form>> ranks(block, terms);
  auto& times = *ranks.template at<Times>(times_at);
  auto *signal = ranks.template at<std::uint64_t>(signals_at + task.signal * 64), *answer = signal + 1;
  auto *given = ranks.template at<std::uint64_t>(given_at), *taken = ranks.template at<std::uint64_t>(taken_at);
  const std::uint64_t begin = part(task.bytes, blockIdx.x), end = part(task.bytes, blockIdx.x + 1);
  if (ranks.rank() == 0) {
    note(ranks, times.begin);
    for (std::uint64_t round = 0; round < task.rounds; ++round)
      ranks.template put_with_signal<Scope::block>(taken + begin, given + begin, end - begin, signal, 1, SignalOp::add,
                                                   1);
    if (blockIdx.x == 0) ranks.template wait_until<Scope::block>(answer, Comparison::ge, task.first, 1);
    note(ranks, times.end);
  } else if (blockIdx.x == 0) {
    ranks.template wait_until<Scope::block>(signal, Comparison::ge, task.goal, 0);
    if (threadIdx.x == 0) ranks.signal_set(answer, task.first, 0);
  }
}

__global__ void fill_all(const __grid_constant__ HeapTerms terms, const __grid_constant__ Task task) {
  CudaHeapBlock block;
  const Ranks ranks(block, terms);
  fill(ranks.at<std::uint64_t>(given_at), part(task.bytes, blockIdx.x), part(task.bytes, blockIdx.x + 1), ranks.rank(),
       task.first);
}
__global__ void compare_all(const __grid_constant__ HeapTerms terms, const __grid_constant__ Task task) {
  CudaHeapBlock block;
  const Ranks ranks(block, terms);
  compare(*ranks.at<Times>(times_at), ranks.at<std::uint64_t>(taken_at), part(task.bytes, blockIdx.x),
          part(task.bytes, blockIdx.x + 1), 1 - ranks.rank(), task.first);
}

enum class Word { p, p_and_quiet, fetch_add };

// Calls of one thread.
template <Word word>
__global__ void words(const __grid_constant__ HeapTerms terms, const __grid_constant__ Task task) {
  CudaHeapBlock block;
  const Ranks ranks(block, terms);
  const int other = 1 - ranks.rank();
  auto& times = *ranks.template at<Times>(times_at);
  auto* there = ranks.at<std::uint64_t>(signals_at + task.signal * 64);
  const std::uint64_t last = task.first + task.rounds;
  if (word != Word::p && ranks.rank() == 1) return;
  std::uint64_t expected = task.first - 1;  // by each fetch_add: the next one needs the result
  for (std::uint64_t round = task.first; round <= last; ++round) {
    if constexpr (word == Word::p) {
      if (ranks.rank() == 0) ranks.p(there, round, 1);
      ranks.wait_until(there, Comparison::ge, round, other);
      if (ranks.rank() == 1) ranks.p(there, round, 0);
    } else if constexpr (word == Word::p_and_quiet) {
      ranks.p(there, round, 1);
      ranks.quiet();
    } else {
      expected = ranks.atomic_fetch_add(there, expected - round + 2, 1) + 1;
    }
    if (round == task.first) note(ranks, times.begin);
  }
  note(ranks, times.end);
  if (ranks.g(there, word == Word::p ? ranks.rank() : 1) != last) times.wrong += 1;
}

__global__ void __launch_bounds__(most_threads)
    barriers(const __grid_constant__ HeapTerms terms, const __grid_constant__ Task task) {
  CudaHeapBlock block;
  const Ranks ranks(block, terms);
  const Team<CudaHeapBlock> team(ranks, task.team);
  auto& times = *ranks.template at<Times>(times_at);
  auto* there = ranks.at<std::uint64_t>(signals_at + task.signal * 64);
  for (std::uint64_t round = task.first; round <= task.first + task.rounds; ++round) {
    if (task.each_round && threadIdx.x == 0) ranks.p(there, round, 1 - ranks.rank());
    team.barrier();
    if (task.each_round && ranks.g(there, ranks.rank()) < round) times.wrong = 1;
    if (round == task.first) note(ranks, times.begin);
  }
  note(ranks, times.end);
}

using Kernel = void (*)(HeapTerms, Task);

class Bench {
 public:
  explicit Bench(Group& group)
      : group_(group),
        place_(gpu(group.rank())),
        stream_(group.platform()->open_stream(place_)),
        pinned_(group.platform()->allocate(host(0), sizeof(Times), Allocation::pinned)),
        heap_(group, "benchmark", place_, heap_bytes),
        team_(heap_.world()) {
    heap_.set_deadline(5);
    on_gpu([&](void*) {
      cudaDeviceProp facts{};
      int device = 0;
      if (cudaGetDevice(&device) != cudaSuccess || cudaGetDeviceProperties(&facts, device) != cudaSuccess)
        throw Error(ErrorKind::device, "the properties of the GPU");
      name_ = facts.name;
      blocks_ = std::min(most_blocks, static_cast<unsigned>(facts.multiProcessorCount));
    });
  }

  Json run() {
    if (group_.rank() == 0)
      std::fprintf(stderr, "%-12s %10s  %-16s %-6s %6s %7s %9s %9s\n", "", "bytes", "form", "scope", "blocks",
                   "threads", "median", "spread");
    one_way<Form::packets, Scope::thread>(8, 1, 1);
    one_way<Form::packets, Scope::warp>(8, 1, 32);
    for (const Bytes bytes : {8, 64, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10})
      for (const unsigned threads : {32u, 128u}) each_form(bytes, 1, threads);
    for (const Bytes bytes : {2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 1 << 20})
      each_form(bytes, 1, 512);
    for (const unsigned blocks : {4u, 8u, 16u}) {
      one_way<Form::packets, Scope::warp>(8 << 10, blocks, 128);
      one_way<Form::lines, Scope::warp>(8 << 10, blocks, 128);
      each_form(8 << 10, blocks, 128);
    }
    each_form(8 << 10, 4, 256);
    for (const unsigned blocks : {8u, 16u, 32u}) each_form(64 << 10, blocks, 512);
    for (const unsigned blocks : {16u, 32u, 64u, blocks_}) each_form(1 << 20, blocks, 512);
    for (const Bytes bytes : {8 << 10, 64 << 10, 1 << 20}) {
      const unsigned blocks = bytes == (8 << 10) ? 4 : bytes == (64 << 10) ? 16 : 64;
      one_way<Form::packets>(bytes, blocks, bytes == (8 << 10) ? 256 : 512, true);
      one_way<Form::lines>(bytes, blocks, bytes == (8 << 10) ? 256 : 512, true);
    }
    for (const unsigned blocks : {8u, 16u, 32u, blocks_}) {
      bandwidth<Form::put>(blocks, 512);
      bandwidth<Form::bulk>(blocks, 128);
    }
    bandwidth<Form::put>(16, 1024);
    measure("word", 8, "p", 1, 1, words<Word::p>, 1000, 0.5);
    measure("word", 8, "p, quiet", 1, 1, words<Word::p_and_quiet>, 1000, 1);
    measure("word", 8, "fetch_add", 1, 1, words<Word::fetch_add>, 1000, 1);
    for (const unsigned threads : {32u, 256u, 1024u}) measure("barrier", 0, "", 1, threads, barriers, 1000, 1);
    return {{"gpu", name_}, {"verified", verified_}, {"rows", std::move(rows_)}};
  }
  bool verified() const { return verified_; }

 private:
  // By a scope of a block, or each of its warps.
  template <Form form, Scope scope = Scope::block>
  void one_way(Bytes bytes, unsigned blocks, unsigned threads, bool all = false) {
    measure(all ? "one way, all" : "one way", bytes, form_names[static_cast<unsigned>(form)], blocks, threads,
            ping_pong<form, scope>, rounds_of(bytes), 0.5, scope, !has_signal(form), all);
  }
  void each_form(Bytes bytes, unsigned blocks, unsigned threads) {
    one_way<Form::put>(bytes, blocks, threads);
    if (bytes / blocks >= 1024) one_way<Form::bulk>(bytes, blocks, threads);
    one_way<Form::packets>(bytes, blocks, threads);
    one_way<Form::lines>(bytes, blocks, threads);
  }
  static std::uint64_t rounds_of(Bytes bytes) { return bytes < (1 << 20) ? 500 : 200; }

  // Kernels whose rounds continue from launch to launch.
  void measure(const char* name, Bytes bytes, const char* form, unsigned blocks, unsigned threads, Kernel kernel,
               std::uint64_t rounds, double part_of_round, Scope scope = Scope::block, bool numbered = false,
               bool all = false) {
    Task task = new_task(bytes);
    task.all = all;
    std::uint64_t next = 1;
    std::uint64_t& first = numbered ? packet_number_ : next;  // numbers of packets and lines never come again
    std::vector<double> samples;
    for (int sample = -2; sample < 15; ++sample) {
      task.each_round = sample == -2;
      task.rounds = sample == -2 ? 50 : rounds;
      task.first = first;
      first += task.rounds + 1;
      group_.barrier();
      launch(kernel, blocks, threads, task);
      task.before += task.rounds + 1;
      const double ns = duration(blocks);
      if (sample >= 0) samples.push_back(ns / 1000 / static_cast<double>(rounds) * part_of_round);
    }
    add(name, bytes, form, blocks, threads, samples, "us", scope);
  }

  template <Form form>
  void bandwidth(unsigned blocks, unsigned threads) {
    Task task = new_task(most);
    task.rounds = 3;
    std::vector<double> samples;
    for (int sample = -1; sample < 7; ++sample) {
      task.first = static_cast<std::uint64_t>(sample + 2);
      task.goal = task.first * task.rounds * blocks;
      if (group_.rank() == 0) launch(fill_all, blocks_, most_threads, task);
      heap_.synchronize(*stream_);
      group_.barrier();
      launch(put_often<form>, group_.rank() == 0 ? blocks : 1, threads, task);
      if (group_.rank() == 1) launch(compare_all, blocks_, most_threads, task);
      const double ns = duration(blocks);
      if (sample >= 0) samples.push_back(static_cast<double>(task.bytes * task.rounds) / ns);
    }
    add("bandwidth", most, form_names[static_cast<unsigned>(form)], blocks, threads, samples, "GB/s");
  }

  Task new_task(Bytes bytes) {
    if (++signal_ == signals) throw Error(ErrorKind::invalid_input, "one_sided_benchmark: too few signals");
    Task task;
    task.team = team_.terms();
    task.bytes = bytes;
    task.signal = signal_;
    return task;
  }
  template <typename Function>
  void on_gpu(const Function& function) {
    stream_->launch({1, 1, {}, function});
  }
  void launch(Kernel kernel, unsigned blocks, unsigned threads, const Task& task) {
    HeapTerms terms = heap_.terms(*stream_);
    terms.protocols.bulk = 0;  // where a kernel has memory for it
    on_gpu([&](void* native) {
      kernel<<<blocks, threads, 0, static_cast<cudaStream_t>(native)>>>(terms, task);
      if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess)
        throw Error(ErrorKind::device, cudaGetErrorString(error));
    });
  }
  // Of the last kernel, in nanoseconds.
  double duration(unsigned blocks) {
    stream_->copy(pinned_.region(), heap_.local().slice(times_at, sizeof(Times)));
    heap_.synchronize(*stream_);
    std::memcpy(&times_, pinned_.region().data, sizeof times_);
    return static_cast<double>(*std::max_element(times_.end, times_.end + blocks) -
                               *std::min_element(times_.begin, times_.begin + blocks));
  }
  // The figures of rank 0.
  void add(const char* name, Bytes bytes, const char* form, unsigned blocks, unsigned threads,
           std::vector<double> samples, const char* unit, Scope scope = Scope::block) {
    const char* by = scope == Scope::thread ? "thread" : scope == Scope::warp ? "warp" : "block";
    const auto wrong = static_cast<double>(times_.wrong);
    double all = 0;
    group_.all_reduce(std::span<const double>(&wrong, 1), std::span(&all, 1), ReduceOp::sum);
    const bool right = all == wrong_before_;
    wrong_before_ = all;
    verified_ = verified_ && right;
    std::sort(samples.begin(), samples.end());
    const double median = samples[samples.size() / 2], spread = samples.back() - samples.front();
    rows_.push_back({{"name", name},
                     {"bytes", bytes},
                     {"form", form},
                     {"scope", by},
                     {"blocks", blocks},
                     {"threads", threads},
                     {"median", median},
                     {"spread", spread},
                     {"unit", unit},
                     {"verified", right}});
    if (group_.rank() == 0)
      std::fprintf(stderr, "%-12s %10llu  %-16s %-6s %6u %7u %9.3f %9.3f %s%s\n", name,
                   static_cast<unsigned long long>(bytes), form, by, blocks, threads, median, spread, unit,
                   right ? "" : "  WRONG");
  }

  Group& group_;
  Place place_;
  std::unique_ptr<Stream> stream_;
  Memory pinned_;
  Heap heap_;
  HeapTeam team_;
  std::string name_;
  unsigned blocks_ = most_blocks;
  std::uint64_t signal_ = 0, packet_number_ = 1;
  Times times_{};
  double wrong_before_ = 0;
  bool verified_ = true;
  Json rows_ = Json::array();
};

// Why this machine cannot run it; in a process that has forked already.
std::string why_not() {
  if (const auto why = why_no_cuda()) return *why;
  return open_cuda_platform()->gpu_count() < 2 ? "it needs two GPUs" : "";
}

int run(int rank, const std::string& job) {
  if (const std::string why = why_not(); !why.empty()) {
    if (rank == 0) {
      std::fprintf(stderr, "one_sided_benchmark: skipped: %s\n", why.c_str());
      std::printf("%s\n", Json{{"skipped", why}}.dump().c_str());
    }
    return 0;
  }
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, 2, job, {}, ""};
  options.platform = open_cuda_platform();
  options.timeout = 20;
  Group group = Group::join(options);
  Bench bench(group);
  const Json result = bench.run();
  if (rank == 0) std::printf("%s\n", result.dump(1).c_str());
  group.barrier();
  return bench.verified() ? 0 : 1;
}

}  // namespace
}  // namespace waywiser::one_sided

int main() {
  const std::string job = "one-sided-" + std::to_string(::getpid());
  return waywiser::forked_ranks("one_sided_benchmark", 2,
                                [&](int rank) { return waywiser::one_sided::run(rank, job); });
}
