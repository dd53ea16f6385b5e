// Times the courier beside cudaMemcpy, with and without the synchronisation after which pageable memory may be trusted
// to have arrived: small sizes, both directions, within one process and between two (there cudaMemcpy works on memory
// that the other process has opened by cudaIpc). Each transfer alone, back to back and after pauses of 0 to 3 us.
// --sweep: the settings of the courier beside each other instead. --rest: puts after 3 ms without one, and what the
// courier costs work beside it: cudaMalloc with cudaFree, and a kernel that fills the GPU. One JSON object on standard
// output, times in seconds; a table on standard error.
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "benchmarks/cuda/full_gpu.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/measure/spin_cpus.hpp"
#include "waywiser/transport/courier/courier.hpp"
#include "waywiser/transport/memory_message.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {
namespace {

constexpr Bytes sizes[] = {8, 64, 256, 1024, 2048, 4096};
constexpr Bytes capacity = 4096;
constexpr int warm_up = 30;
constexpr int samples = 150;  // of one round
constexpr int rounds = 5;

Deadline soon() { return Deadline::in(60); }

// Two processes that spin must not share a core.
SpinCpus spin_cpus() { return choose_spin_cpus(spin_cpu_choices({"courier", host(0), gpu(0), 2, {}})); }

struct Case {
  Bytes bytes = 0;
  bool to_gpu = true;
  bool pauses = false;
  int seed = 1;
};

Json to_json(const Case& one) {
  return {{"bytes", one.bytes}, {"to_gpu", one.to_gpu}, {"pauses", one.pauses}, {"seed", one.seed}};
}

Case case_from_json(const Json& value) {
  return {value["bytes"].get<Bytes>(), value["to_gpu"].get<bool>(), value["pauses"].get<bool>(),
          value["seed"].get<int>()};
}

void pause_at_random() {
  static std::minstd_rand random(1);  // NOLINT(cert-msc51-cpp,cert-msc32-c): the same in every run
  const Seconds until = now_seconds() + 3e-6 * std::uniform_real_distribution<>()(random);
  while (now_seconds() < until) {
  }
}

template <typename Work>
std::vector<Seconds> times_of(const Case& one, Work work) {
  std::vector<Seconds> times;
  for (int i = -warm_up; i < samples; ++i) {
    if (one.pauses) pause_at_random();
    const Seconds start = now_seconds();
    work();
    if (i >= 0) times.push_back(now_seconds() - start);
  }
  return times;
}

void fill(Platform& platform, Region region, int seed) {
  const auto stream = platform.open_stream(region.place);
  fill_pattern(*stream, region, static_cast<std::uint64_t>(seed));
  stream->synchronize(soon());
}

bool intact(Platform& platform, ConstRegion region, int seed) {
  const auto stream = platform.open_stream(region.place);
  return count_mismatches(*stream, region, static_cast<std::uint64_t>(seed), soon()) == 0;
}

std::vector<Seconds> memcpy_times(const Case& one, std::byte* far, std::byte* near, bool synchronise) {
  std::byte* to = one.to_gpu ? far : near;
  const std::byte* from = one.to_gpu ? near : far;
  return times_of(one, [&] {
    cudaMemcpy(to, from, one.bytes, cudaMemcpyDefault);
    if (synchronise) cudaStreamSynchronize(nullptr);
  });
}

// A child that answers each case with its times. It is forked before CUDA is used.
class Child {
 public:
  template <typename Serve>
  explicit Child(Serve serve) {
    auto [mine, theirs] = PeerChannel::socket_pair();
    process_ = ::fork();
    if (process_ == 0) {
      mine = Descriptor();
      try {
        PeerChannel channel(std::move(theirs));
        serve(channel);
      } catch (const Error& problem) {
        if (problem.kind() != ErrorKind::io) std::fprintf(stderr, "child: %s\n", problem.what());
      }
      ::_exit(0);
    }
    channel_ = std::make_unique<PeerChannel>(std::move(mine));
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    channel_.reset();
    ::waitpid(process_, nullptr, 0);
  }
  PeerChannel& channel() { return *channel_; }

 private:
  pid_t process_ = -1;
  std::unique_ptr<PeerChannel> channel_;
};

// The host's end of the courier: no CUDA in this process.
void serve_courier(PeerChannel& channel) {
  const auto platform = open_host_platform();
  const OnCpu bound(spin_cpus().source);
  channel.receive(soon());  // the other end is there
  const auto pair = open_courier({"courier", host(0), gpu(0), 2, {}}, {*platform, &channel});
  const auto stream = platform->open_stream(host(0));
  const Memory memory = platform->allocate(host(0), capacity, Allocation::pageable);
  for (;;) {
    const Case one = case_from_json(channel.receive(Deadline::in(600)).first);
    const Region region = memory.region().slice(0, one.bytes);
    fill(*platform, region, one.to_gpu ? one.seed : ~one.seed);
    channel.send(true, soon());
    if (one.to_gpu) {
      const Deadline deadline = soon();
      const auto times = times_of(one, [&] {
        pair->put({nullptr, one.bytes, gpu(0)}, region, *stream);
        pair->finish(*stream, deadline);
      });
      channel.send(times, soon());
    } else {
      const Deadline deadline = soon();
      std::vector<Seconds> arrivals;
      for (int i = -warm_up; i < samples; ++i) {
        pair->accept(region, *stream);
        pair->finish(*stream, deadline);
        if (i >= 0) arrivals.push_back(now_seconds());
      }
      channel.send({{"good", intact(*platform, region, one.seed)}, {"arrivals", arrivals}}, soon());
    }
  }
}

// cudaMemcpy to and from the GPU memory of the parent.
void serve_memcpy(PeerChannel& channel) {
  auto [message, descriptors] = channel.receive(soon());
  const auto platform = open_cuda_platform();
  const Memory far = platform->open_memory(memory_handle_from_json(message, descriptors));
  std::map<bool, Memory> near;
  for (const bool pinned : {true, false})
    near[pinned] = platform->allocate(host(0), capacity, pinned ? Allocation::pinned : Allocation::pageable);
  const OnCpu bound(spin_cpus().source);
  cudaSetDevice(0);
  for (;;) {
    const Json command = channel.receive(Deadline::in(600)).first;
    channel.send(memcpy_times(case_from_json(command), far.region().data, near[command["pinned"]].region().data,
                              command["synchronise"]),
                 soon());
  }
}

struct Bench {
  std::map<std::string, std::pair<Json, std::vector<Seconds>>> rows;
  bool verified = true;

  void add(int processes, const Case& one, const std::string& method, const std::vector<Seconds>& times, bool good) {
    const Json key = {{"processes", processes},
                      {"direction", one.to_gpu ? "host>gpu" : "gpu>host"},
                      {"bytes", one.bytes},
                      {"pauses", one.pauses ? "0 to 3 us" : "none"},
                      {"method", method}};
    auto& [name, all] = rows[key.dump()];
    name = key;
    all.insert(all.end(), times.begin(), times.end());
    if (!good) std::fprintf(stderr, "WRONG BYTES: %s\n", key.dump().c_str());
    verified = verified && good;
  }

  void print(const Platform& platform) {
    Json list = Json::array();
    for (auto& [unused, entry] : rows) {
      auto& [row, times] = entry;
      std::ranges::sort(times);
      row["p50"] = times[times.size() / 2];
      row["p99"] = times[times.size() * 99 / 100];
      row["samples"] = times.size();
      std::fprintf(stderr, "%d %s %5d %-9s %-44s %6.2f %6.2f\n", row["processes"].get<int>(),
                   row["direction"].get<std::string>().c_str(), row["bytes"].get<int>(),
                   row["pauses"].get<std::string>().c_str(), row["method"].get<std::string>().c_str(),
                   row["p50"].get<double>() * 1e6, row["p99"].get<double>() * 1e6);
      list.push_back(row);
    }
    const Json result = {{"schema", "waywiser.courier_benchmark"},
                         {"version", 1},
                         {"state", Json::parse(platform.state())},
                         {"verified", verified},
                         {"rows", list}};
    std::printf("%s\n", result.dump(1).c_str());
  }
};

void courier_alone(Bench& bench, Platform& platform, const Case& one, Region far, const std::string& method,
                   const CourierOptions& options = {}) {
  const Memory near = platform.allocate(host(0), one.bytes, Allocation::pageable);
  const Place to = one.to_gpu ? gpu(0) : host(0), from = one.to_gpu ? host(0) : gpu(0);
  const Region destination = one.to_gpu ? far : near.region(), source = one.to_gpu ? near.region() : far;
  fill(platform, source, one.seed);
  fill(platform, destination, ~one.seed);
  const auto transport = open_courier({"courier", from, to, 1, {}}, {platform}, options);
  const auto stream = platform.open_stream(host(0));
  const Deadline deadline = soon();
  const auto times = times_of(one, [&] {
    transport->put(destination, source, *stream);
    transport->finish(*stream, deadline);
  });
  transport->rest();
  bench.add(1, one, method, times, intact(platform, destination, one.seed));
}

void courier_of_two(Bench& bench, Platform& platform, const Case& one, Region far, Transport& pair, Child& child) {
  const auto stream = platform.open_stream(host(0));
  fill(platform, far, one.to_gpu ? ~one.seed : one.seed);
  child.channel().send(to_json(one), soon());
  child.channel().receive(soon());
  if (one.to_gpu) {
    for (int i = -warm_up; i < samples; ++i) pair.accept(far, *stream);
    pair.finish(*stream, soon());
    const auto times = child.channel().receive(soon()).first.get<std::vector<Seconds>>();
    pair.rest();
    return bench.add(2, one, "courier", times, intact(platform, far, one.seed));
  }
  const Deadline deadline = soon();
  std::vector<Seconds> starts;  // the two processes have one clock
  times_of(one, [&] {
    starts.push_back(now_seconds());
    pair.put({nullptr, one.bytes, host(0)}, far, *stream);
    pair.finish(*stream, deadline);
  });
  const Json answer = child.channel().receive(soon()).first;
  pair.rest();
  auto times = answer["arrivals"].get<std::vector<Seconds>>();
  for (std::size_t i = 0; i < times.size(); ++i) times[i] -= starts[warm_up + i];
  bench.add(2, one, "courier", times, answer["good"].get<bool>());
}

void memcpy_rows(Bench& bench, const Case& one, Region far, std::map<bool, Memory>& near, Child& child) {
  for (const bool pinned : {true, false})
    for (const bool synchronise : {true, false}) {
      const std::string method = std::string("cudaMemcpy, ") + (pinned ? "pinned" : "pageable") +
                                 (synchronise ? ", cudaStreamSynchronize" : "");
      bench.add(1, one, method, memcpy_times(one, far.data, near[pinned].region().data, synchronise), true);
      Json command = to_json(one);
      command["pinned"] = pinned;
      command["synchronise"] = synchronise;
      child.channel().send(command, soon());
      bench.add(2, one, method, child.channel().receive(soon()).first.get<std::vector<Seconds>>(), true);
    }
}

std::vector<Case> cases(int round) {
  std::vector<Case> all;
  for (const Bytes bytes : sizes)
    for (const bool to_gpu : {true, false})
      for (const bool pauses : {false, true}) all.push_back({bytes, to_gpu, pauses, 10 + round});
  return all;
}

void compare(Bench& bench, Platform& platform, Child& courier_child, Child& memcpy_child) {
  const Memory far = platform.allocate(gpu(0), capacity, Allocation::gpu);
  std::map<bool, Memory> near;
  for (const bool pinned : {true, false})
    near[pinned] = platform.allocate(host(0), capacity, pinned ? Allocation::pinned : Allocation::pageable);
  memcpy_child.channel().send(to_json(platform.export_memory(far)), soon());
  courier_child.channel().send(true, soon());
  const auto pair =
      open_courier({"courier", gpu(0), host(0), 2, {}}, {platform, &courier_child.channel()}, CourierOptions{});
  cudaSetDevice(0);
  for (int round = 0; round < rounds; ++round)
    for (const Case& one : cases(round)) {
      const Region region = far.region().slice(0, one.bytes);
      courier_alone(bench, platform, one, region, "courier");
      courier_of_two(bench, platform, one, region, *pair, courier_child);
      memcpy_rows(bench, one, region, near, memcpy_child);
    }
}

void sweep(Bench& bench, Platform& platform) {
  const Memory far = platform.allocate(gpu(0), capacity, Allocation::gpu);
  for (int round = 0; round < 2; ++round)
    for (const Case& one : cases(round))
      for (const unsigned lanes : {1u, 2u, 4u})
        for (const unsigned pollers : {1u, 2u, 4u})
          for (const Seconds gap : {0.2e-6, 0.3e-6, 0.4e-6}) {
            if (pollers == 1 && gap != 0.2e-6) continue;  // it looks as often as it can
            CourierOptions options;
            options.shape = {lanes, pollers};
            options.look_gap = gap;
            char name[60];
            std::snprintf(name, sizeof name, "courier lanes=%u pollers=%u gap=%.2f", lanes, pollers, gap * 1e6);
            courier_alone(bench, platform, one, far.region().slice(0, one.bytes), name, options);
          }
}

constexpr Seconds rest = 3e-3;

// After so many puts in a row, `pause` later: what follows them, timed alone.
template <typename Put, typename Work>
std::vector<Seconds> beside(int puts, Seconds pause, Put put, Work work) {
  std::vector<Seconds> times;
  for (int i = -3; i < 40; ++i) {
    for (int j = 0; j < puts; ++j) put();
    const Seconds until = now_seconds() + pause;
    while (now_seconds() < until) {
    }
    const Seconds start = now_seconds();
    work();
    if (i >= 0) times.push_back(now_seconds() - start);
    cudaDeviceSynchronize();
  }
  return times;
}

void at_rest(Bench& bench, Platform& platform) {
  const Memory far = platform.allocate(gpu(0), capacity, Allocation::gpu);
  const Memory near = platform.allocate(host(0), capacity, Allocation::pageable);
  cudaSetDevice(0);
  const auto stream = platform.open_stream(host(0));
  const Deadline deadline = soon();
  for (int round = 0; round < rounds; ++round)
    for (const Bytes bytes : {Bytes{8}, Bytes{4096}})
      for (const bool to_gpu : {true, false}) {
        const Case one{bytes, to_gpu, false, 10 + round};
        const Region destination = (to_gpu ? far : near).region().slice(0, bytes);
        const Region source = (to_gpu ? near : far).region().slice(0, bytes);
        fill(platform, source, one.seed);
        const auto by = [&](const std::string& method, const auto& put) {
          fill(platform, destination, ~one.seed);
          const auto name = [&](const std::string& what) { return method + ": " + what; };
          bench.add(1, one, name("a put after 3 ms"), beside(0, rest, put, put), true);
          bench.add(1, one, name("a put"), beside(10, 0, put, put), true);
          if (bytes == 8 && to_gpu) {
            const auto allocate = [] {
              void* memory = nullptr;
              cudaMalloc(&memory, 1 << 20);
              cudaFree(memory);
            };
            const auto fill_gpu = [] {
              run_on_full_gpu(200000);
              cudaDeviceSynchronize();
            };
            bench.add(1, one, name("cudaMalloc, cudaFree behind ten puts"), beside(10, 0, put, allocate), true);
            bench.add(1, one, name("cudaMalloc, cudaFree behind a put"), beside(1, rest, put, allocate), true);
            bench.add(1, one, name("full GPU, 200 us, behind ten puts"), beside(10, 0, put, fill_gpu), true);
            bench.add(1, one, name("full GPU, 200 us, 0.2 ms behind ten puts"), beside(10, 2e-4, put, fill_gpu), true);
            bench.add(1, one, name("full GPU, 200 us, behind a put"),
                      beside(0, rest, put,
                             [&] {
                               put();
                               fill_gpu();
                             }),
                      true);
          }
          bench.add(1, one, name("a put"), {}, intact(platform, destination, one.seed));
        };
        for (const bool repeats : {false, true}) {
          const auto courier = open_transport({"courier", source.place, destination.place, 1, {}},
                                              {.platform = platform, .repeats = repeats});
          by(repeats ? "courier that repeats" : "courier", [&] {
            courier->put(destination, source, *stream);
            courier->finish(*stream, deadline);
          });
          courier->rest();
        }
        by("cudaMemcpy", [&] {
          cudaMemcpy(destination.data, source.data, bytes, cudaMemcpyDefault);
          cudaStreamSynchronize(nullptr);
        });
      }
}

int run(int argc, char** argv) {
  Child courier_child(serve_courier), memcpy_child(serve_memcpy);
  if (const auto why = why_no_cuda()) {
    std::fprintf(stderr, "no GPU to measure: %s\n", why->c_str());
    return 2;
  }
  const auto platform = open_cuda_platform();
  const OnCpu bound(spin_cpus().destination);
  Bench bench;
  if (argc == 2 && std::strcmp(argv[1], "--sweep") == 0)
    sweep(bench, *platform);
  else if (argc == 2 && std::strcmp(argv[1], "--rest") == 0)
    at_rest(bench, *platform);
  else
    compare(bench, *platform, courier_child, memcpy_child);
  bench.print(*platform);
  return bench.verified ? 0 : 1;
}

}  // namespace
}  // namespace waywiser

int main(int argc, char** argv) {
  try {
    return waywiser::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "courier_benchmark: %s\n", error.what());
    return 1;
  }
}
