// A group beside NCCL on the GPUs of this machine, one process a GPU: each operation and size, eager and in a CUDA
// graph, in rounds in which both take turns. From 16 MiB on collectives are timed between symmetric arrays, too, and an
// all_gather whose input lies in its output; a ring beside bare copies into the memory of the next rank. The first and
// the last round of each are verified. One JSON object on standard output, a table on standard error.
// Usage: group_beside_nccl [RANKS [OPERATION...]]; with the word "lengths": 200 random lengths of float32 by the group
// alone, to find lengths that take more time than longer ones. WAYWISER_LIBNCCL names NCCL.
#include <cuda_runtime_api.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/forked_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/collective/nccl/nccl_library.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {
namespace {

constexpr Bytes mib = Bytes{1} << 20, most = Bytes{1} << 30;
constexpr Bytes sizes[] = {8,       64,      1 << 10,  8 << 10,  64 << 10,  256 << 10,
                           1 * mib, 4 * mib, 16 * mib, 64 * mib, 256 * mib, 1024 * mib};
constexpr const char* operations[] = {"all_reduce",   "all_gather", "reduce_scatter", "all_to_all",
                                      "all_to_all_v", "broadcast",  "message",        "ring"};
constexpr Bytes symmetric_from = 16 * mib;
constexpr int rounds = 9, nccl_float32 = 7, nccl_sum = 0;
constexpr Seconds patience = 60;

// NCCL's calls of this rank, all in one stream.
class Nccl {
 public:
  Nccl(Group& group, cudaStream_t stream)
      : functions_(nccl_library().functions()), ranks_(group.size()), rank_(group.rank()), stream_(stream) {
    if (const std::string why = nccl_library().why_not(); !why.empty()) throw Error(ErrorKind::unavailable, why);
    NcclUniqueId id;
    if (rank_ == 0) check(functions_.get_unique_id(&id));
    group.broadcast(std::as_writable_bytes(std::span(id.bytes)), 0);
    check(functions_.comm_init_rank(&comm_, ranks_, id, rank_));
  }
  Nccl(const Nccl&) = delete;
  ~Nccl() { functions_.comm_destroy(comm_); }

  void all_reduce(const float* in, float* out, std::size_t count) const {
    check(functions_.all_reduce(in, out, count, nccl_float32, nccl_sum, comm_, stream_));
  }
  void all_gather(const float* in, float* out, std::size_t count) const {
    check(functions_.all_gather(in, out, count, nccl_float32, comm_, stream_));
  }
  void reduce_scatter(const float* in, float* out, std::size_t count) const {
    check(functions_.reduce_scatter(in, out, count, nccl_float32, nccl_sum, comm_, stream_));
  }
  void broadcast(const float* in, float* out, std::size_t count) const {
    check(functions_.broadcast(in, out, count, nccl_float32, 0, comm_, stream_));
  }
  void blocks(const float* in, const std::vector<std::size_t>& give, float* out,
              const std::vector<std::size_t>& take) const {
    together([&] {
      for (int rank = 0; rank < ranks_; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        send(in, give[at], rank);
        receive(out, take[at], rank);
        in += give[at];
        out += take[at];
      }
    });
  }
  void send(const float* in, std::size_t count, int to) const {
    check(functions_.send(in, count, nccl_float32, to, comm_, stream_));
  }
  void receive(float* out, std::size_t count, int from) const {
    check(functions_.receive(out, count, nccl_float32, from, comm_, stream_));
  }
  void together(const std::function<void()>& calls) const {
    check(functions_.group_start());
    calls();
    check(functions_.group_end());
  }

 private:
  static void check(int result) { nccl_library().check(result, "NCCL"); }

  const NcclFunctions& functions_;
  int ranks_, rank_;
  cudaStream_t stream_;
  NcclComm comm_ = nullptr;
};

// An operation of one size: what each library enqueues, and what arrives at place `i` of the output.
struct Case {
  std::string operation;
  Bytes bytes;
  std::size_t taken;  // elements of the output at this rank
  std::function<float(std::size_t i)> expected;
  std::map<std::string, std::function<void()>> calls;  // by library
  double halves = 1;                                   // a call is so many messages one after the other
};

class Rank {
 public:
  explicit Rank(Group& group)
      : group_(group),
        platform_(*group.platform()),
        place_(gpu(group.rank())),
        ranks_(static_cast<std::size_t>(group.size())),
        rank_(static_cast<std::size_t>(group.rank())),
        stream_(platform_.open_stream(place_)),
        host_(platform_.allocate(host(0), most, Allocation::pinned)) {
    check_cuda(cudaSetDevice(group.rank()), "cudaSetDevice");
    check_cuda(cudaEventCreate(&begin_), "cudaEventCreate");
    check_cuda(cudaEventCreate(&end_), "cudaEventCreate");
    for (std::size_t i = 0; i < most / 4; ++i) values()[i] = value(rank_, i);
    for (Memory* each : {&input_, &output_, &symmetric_input_, &symmetric_output_})
      *each = platform_.allocate(place_, most, Allocation::gpu);
    for (const Memory* each : {&input_, &symmetric_input_}) stream_->copy(each->region(), host_.region());
    stream_->synchronize(Deadline::in(patience));
    for (const Memory* each : {&symmetric_input_, &symmetric_output_})
      windows_.push_back(group_.expose(each->region(), true));
    open_next();
    group_.barrier(Mode::on(*stream_));
    group_.synchronize(*stream_);
    nccl_ = std::make_unique<Nccl>(group_, native());
  }

  Json beside(const std::vector<std::string>& wanted) {
    for (const char* operation : operations) {
      if (!wanted.empty() && std::ranges::find(wanted, operation) == wanted.end()) continue;
      for (const Bytes bytes : sizes)
        if (const Case each = case_of(operation, bytes); !each.calls.empty())
          for (const bool in_graph : {false, true}) time(each, in_graph);
    }
    return results();
  }

  // Each in a graph; the same 200 lengths in every run.
  Json lengths() {
    std::mt19937 draw(1);
    std::uniform_real_distribution<double> exponent(3, 27);  // 8 bytes to 128 MiB
    std::vector<Bytes> all(200);
    for (Bytes& each : all) each = static_cast<Bytes>(std::exp2(exponent(draw))) / 4 * 4;
    std::ranges::sort(all);
    for (const char* operation : {"all_reduce", "all_gather", "all_to_all"})
      for (const Bytes bytes : all) {
        Case each = case_of(operation, bytes);
        std::erase_if(each.calls, [](const auto& one) { return one.first != "group"; });
        time(each, true);
      }
    return results();
  }

 private:
  // The memory into which "one copy" goes, which nobody waits for.
  void open_next() {
    std::vector<SharedRegion> all(ranks_);
    const SharedRegion mine = platform_.share(symmetric_output_.region());
    group_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    next_ = platform_.open_shared(all[(rank_ + 1) % ranks_], place_);
  }
  Json results() {
    return {{"ranks", group_.size()},
            {"rounds", rounds},
            {"nccl", std::to_string(nccl_library().version())},
            {"rows", std::move(rows_)}};
  }
  cudaStream_t native() const { return static_cast<cudaStream_t>(stream_->native()); }
  float* values() const { return reinterpret_cast<float*>(host_.region().data); }
  static float* floats(const Memory& memory) { return reinterpret_cast<float*>(memory.region().data); }
  static float value(std::size_t rank, std::size_t i) { return static_cast<float>((i * 7 + rank * 13) % 101); }
  Elements own_block(std::size_t count) const {
    return {symmetric_output_.region().slice(rank_ * count * 4, count * 4), DataType::float32};
  }
  static Elements part(const Memory& memory, std::size_t count) {
    return {memory.region().slice(0, count * 4), DataType::float32};
  }

  // `bytes`: of what a rank gives to each other one. Without calls if the arrays would be too long.
  Case case_of(const std::string& operation, Bytes bytes) {
    const std::size_t count = bytes / 4;
    const bool spreads = operation == "all_gather" || operation.starts_with("all_to_all");
    const bool scatters = operation == "reduce_scatter" || operation.starts_with("all_to_all");
    Case made{operation, bytes, count, {}, {}};
    if ((spreads || scatters) && bytes * ranks_ > most) return made;
    const Mode on = Mode::on(*stream_);
    const float* in = floats(input_);
    float* out = floats(output_);
    // `call` is made with arrays of no window and, if they are long, with symmetric ones.
    const auto ours = [&](std::size_t give, std::size_t take, const auto& call) {
      made.calls["group"] = [=, this] { call(part(input_, give), part(output_, take)); };
      if (bytes >= symmetric_from)
        made.calls["symmetric"] = [=, this] { call(part(symmetric_input_, give), part(symmetric_output_, take)); };
    };
    const auto sum = [ranks = ranks_](std::size_t i) {
      float all = 0;
      for (std::size_t rank = 0; rank < ranks; ++rank) all += value(rank, i);
      return all;
    };
    Group& group = group_;
    if (operation == "all_reduce") {
      ours(count, count,
           [&group, on](Elements give, Elements take) { group.all_reduce(give, take, ReduceOp::sum, on); });
      made.calls["nccl"] = [=, this] { nccl_->all_reduce(in, out, count); };
      made.expected = sum;
    } else if (operation == "all_gather") {
      made.taken = count * ranks_;
      ours(count, made.taken, [&group, on](Elements give, Elements take) { group.all_gather(give, take, on); });
      if (bytes >= symmetric_from)
        made.calls["in place"] = [=, this] {
          group_.all_gather(own_block(count), part(symmetric_output_, count * ranks_), on);
        };
      made.calls["nccl"] = [=, this] { nccl_->all_gather(in, out, count); };
      made.expected = [=](std::size_t i) { return value(i / count, i % count); };
    } else if (operation == "reduce_scatter") {
      ours(count * ranks_, count,
           [&group, on](Elements give, Elements take) { group.reduce_scatter(give, take, ReduceOp::sum, on); });
      made.calls["nccl"] = [=, this] { nccl_->reduce_scatter(in, out, count); };
      made.expected = [=, mine = rank_ * count](std::size_t i) { return sum(mine + i); };
    } else if (operation == "broadcast") {
      // In place, as NCCL's users and ours do; the root's values stay those of rank 0's input.
      made.calls["group"] = [=, this] { group_.broadcast(part(rank_ == 0 ? input_ : output_, count), 0, on); };
      if (bytes >= symmetric_from)
        made.calls["symmetric"] = [=, this] { group_.broadcast(part(symmetric_output_, count), 0, on); };
      made.calls["nccl"] = [=, this] {
        float* data = rank_ == 0 ? floats(input_) : out;
        nccl_->broadcast(data, data, count);
      };
      made.taken = rank_ == 0 ? 0 : count;
      made.expected = [](std::size_t i) { return value(0, i); };
    } else if (scatters) {
      blocks(made, operation == "all_to_all" ? std::vector(ranks_, count) : unlike_blocks(count), on);
    } else {
      messages(made, on);
    }
    return made;
  }

  // Of all_to_all_v: what goes over `distance` ranks, so that all ranks give and take as much.
  std::vector<std::size_t> unlike_blocks(std::size_t count) const {
    std::vector<std::size_t> found(ranks_);
    for (std::size_t to = 0; to < ranks_; ++to)
      found[to] = std::max<std::size_t>(1, count * ((to + ranks_ - rank_) % ranks_ + 1) / ranks_);
    return found;
  }
  void blocks(Case& made, const std::vector<std::size_t>& give, Mode on) {
    std::vector<std::size_t> take(ranks_), begin(ranks_);
    for (std::size_t from = 0; from < ranks_; ++from) {
      const std::size_t distance = (rank_ + ranks_ - from) % ranks_;
      take[from] = give[(rank_ + distance) % ranks_];
      for (std::size_t to = 0; to < rank_; ++to) begin[from] += give[(rank_ + (to + ranks_ - from)) % ranks_];
    }
    std::size_t given = 0;
    made.taken = 0;
    for (std::size_t each = 0; each < ranks_; ++each) {
      given += give[each];
      made.taken += take[each];
    }
    const bool equal = made.operation == "all_to_all";
    const auto call = [=, this](const Memory& from, const Memory& to) {
      if (equal)
        group_.all_to_all(part(from, given), part(to, made.taken), on);
      else
        group_.all_to_all_v(part(from, given), give, part(to, made.taken), take, on);
    };
    made.calls["group"] = [=, this] { call(input_, output_); };
    if (equal && made.bytes >= symmetric_from)
      made.calls["symmetric"] = [=, this] { call(symmetric_input_, symmetric_output_); };
    made.calls["nccl"] = [=, this] { nccl_->blocks(floats(input_), give, floats(output_), take); };
    made.expected = [=](std::size_t i) {
      std::size_t from = 0;
      for (; i >= take[from]; ++from) i -= take[from];
      return value(from, begin[from] + i);
    };
  }

  // A ping-pong of ranks 0 and 1, or a message of each rank to the next one, of two ranks: both ways at once.
  void messages(Case& made, Mode on) {
    const std::size_t count = made.bytes / 4;
    const bool one_way = made.operation == "message";
    const auto size = static_cast<int>(ranks_), mine = static_cast<int>(rank_);
    const int to = one_way ? 1 - mine : (mine + 1) % size, from = one_way ? to : (mine + size - 1) % size;
    made.halves = one_way ? 2 : 1;
    made.expected = [from](std::size_t i) { return value(static_cast<std::size_t>(from), i); };
    if (one_way && mine > 1) {
      made.taken = 0;
      made.calls = {{"group", [] {}}, {"nccl", [] {}}};
      return;
    }
    const auto ordered = [=](const auto& send, const auto& receive) {
      if (mine == 0) send();
      receive();
      if (mine != 0) send();
    };
    made.calls["group"] = [=, this] {
      if (!one_way) return void(group_.sendrecv(part(input_, count), to, part(output_, count), from, 0, on));
      ordered([&] { group_.send(part(input_, count), to, 0, on); },
              [&] { group_.recv(part(output_, count), from, 0, on); });
    };
    if (!one_way)
      made.calls["one copy"] = [=, this] {
        stream_->copy(next_.region().slice(0, count * 4), part(input_, count).region);
      };
    made.calls["nccl"] = [=, this] {
      const auto send = [&] { nccl_->send(floats(input_), count, to); };
      const auto receive = [&] { nccl_->receive(floats(output_), count, from); };
      if (one_way) return ordered(send, receive);
      nccl_->together([&] {
        send();
        receive();
      });
    };
  }

  void time(const Case& made, bool in_graph) {
    const int times = made.bytes <= mib ? 50 : 5;
    std::map<std::string, std::vector<double>> found;
    std::map<std::string, cudaGraphExec_t> graphs;
    for (const auto& [library, call] : made.calls) {
      call();  // sets aside what this size needs, which no captured call can
      group_.synchronize(*stream_);
      if (in_graph) graphs[library] = captured(call, times);
    }
    bool right = true;
    for (int round = 0; round <= rounds; ++round) {
      std::vector<std::string> order;
      for (const auto& [library, call] : made.calls) order.push_back(library);
      if (round % 2 != 0) std::ranges::reverse(order);
      for (const std::string& library : order) {
        const bool looks = round == 0 || round == rounds;
        if (looks) clear(made, library);
        const double us = timed([&] {
          if (in_graph) return check_cuda(cudaGraphLaunch(graphs[library], native()), "cudaGraphLaunch");
          for (int i = 0; i < times; ++i) made.calls.at(library)();
        });
        if (looks) right = is_right(made, library) && right;
        if (round > 0) found[library].push_back(us / times / made.halves);
      }
    }
    for (const auto& [library, graph] : graphs) check_cuda(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
    for (auto& [library, samples] : found) {
      std::ranges::sort(samples);
      rows_.push_back({{"operation", made.operation},
                       {"bytes", made.bytes},
                       {"how", in_graph ? "graph" : "eager"},
                       {"by", library},
                       {"us", samples[samples.size() / 2]},
                       {"low", samples[1]},
                       {"high", samples[samples.size() - 2]},
                       {"verified", right}});
      if (rank_ == 0)
        std::fprintf(stderr, "%-15s %10s %-6s %-10s %10.2f us%s\n", made.operation.c_str(),
                     format_bytes(made.bytes).c_str(), in_graph ? "graph" : "eager", library.c_str(),
                     samples[samples.size() / 2], right ? "" : "  WRONG");
    }
    if (!right) throw Error(ErrorKind::io, made.operation + ": wrong bytes");
  }

  cudaGraphExec_t captured(const std::function<void()>& call, int times) {
    check_cuda(cudaStreamBeginCapture(native(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (int i = 0; i < times; ++i) call();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t runnable = nullptr;
    check_cuda(cudaStreamEndCapture(native(), &graph), "cudaStreamEndCapture");
    check_cuda(cudaGraphInstantiate(&runnable, graph, 0), "cudaGraphInstantiate");
    check_cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    return runnable;
  }

  // Microseconds at the slowest rank, after the ranks have met on the GPUs.
  double timed(const std::function<void()>& enqueue) {
    group_.barrier();
    group_.barrier(Mode::on(*stream_));
    check_cuda(cudaEventRecord(begin_, native()), "cudaEventRecord");
    enqueue();
    check_cuda(cudaEventRecord(end_, native()), "cudaEventRecord");
    group_.synchronize(*stream_);
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "cudaEventElapsedTime");
    const double mine = static_cast<double>(ms) * 1e3;
    double slowest = 0;
    group_.all_reduce(std::span<const double>(&mine, 1), std::span(&slowest, 1), ReduceOp::max);
    return slowest;
  }

  const Memory& output_of(const std::string& library) const {
    return library == "group" || library == "nccl" ? output_ : symmetric_output_;
  }
  void clear(const Case& made, const std::string& library) {
    check_cuda(cudaMemsetAsync(output_of(library).region().data, 0xee, std::max<Bytes>(made.taken * 4, 1), native()),
               "cudaMemsetAsync");
    if (made.operation == "broadcast" && library == "symmetric" && rank_ == 0)
      stream_->copy(symmetric_output_.region().slice(0, made.bytes), input_.region().slice(0, made.bytes));
    if (library == "in place") {
      const Region own = own_block(made.bytes / 4).region;
      stream_->copy(own, input_.region().slice(0, own.bytes));
    }
    group_.synchronize(*stream_);
    group_.barrier();
  }
  bool is_right(const Case& made, const std::string& library) {
    stream_->copy(host_.region().slice(0, made.taken * 4), output_of(library).region().slice(0, made.taken * 4));
    group_.synchronize(*stream_);
    // By several threads: of long arrays this takes longer than all else.
    constexpr std::size_t threads = 12;
    std::array<std::int32_t, threads> rights{};
    {
      std::vector<std::jthread> lookers;
      for (std::size_t thread = 0; thread < threads; ++thread)
        lookers.emplace_back([&, thread] {
          std::size_t i = made.taken * thread / threads;
          const std::size_t end = made.taken * (thread + 1) / threads;
          while (i < end && values()[i] == made.expected(i)) ++i;
          rights[thread] = i == end ? 1 : 0;
        });
    }
    const std::int32_t right = *std::ranges::min_element(rights);
    std::int32_t all = 0;
    group_.all_reduce(std::span<const std::int32_t>(&right, 1), std::span(&all, 1), ReduceOp::min);
    return all == 1;
  }

  Group& group_;
  Platform& platform_;
  Place place_;
  std::size_t ranks_, rank_;
  std::unique_ptr<Stream> stream_;
  Memory input_, output_, symmetric_input_, symmetric_output_, host_, next_;
  std::vector<Window> windows_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::unique_ptr<Nccl> nccl_;
  Json rows_ = Json::array();
};

int run_rank(int rank, int ranks, const std::string& job, const std::vector<std::string>& wanted) {
  JoinOptions options;
  options.launch = Launch{"benchmark", rank, ranks, job, {}, ""};
  options.platform = open_cuda_platform();
  Group group = Group::join(options);
  Rank mine(group);
  const Json result = wanted == std::vector<std::string>{"lengths"} ? mine.lengths() : mine.beside(wanted);
  if (rank == 0) std::printf("%s\n", result.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace waywiser

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 2;
  const std::vector<std::string> wanted(argv + std::min(argc, 2), argv + argc);
  const bool known = std::ranges::all_of(wanted, [&](const std::string& word) {
    return (word == "lengths" && wanted.size() == 1) ||
           std::ranges::find(waywiser::operations, word) != std::end(waywiser::operations);
  });
  if (ranks < 2 || ranks > 8 || !known) {
    std::fputs("usage: group_beside_nccl [RANKS [OPERATION...|lengths]], 2 to 8 ranks\n", stderr);
    return 2;
  }
  const std::string job = "benchmark-" + std::to_string(::getpid());
  return waywiser::forked_ranks("group_beside_nccl", ranks,
                                [&](int rank) { return waywiser::run_rank(rank, ranks, job, wanted); });
}
