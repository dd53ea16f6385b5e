// Times, on the GPUs of this machine: the courier beside cudaMemcpy, copies between GPUs beside the copy engine's own
// limit, and staging through host memory beside the slower PCIe direction; in one process, and with the memory of a
// second process; with --courier, only the courier and its settings. One JSON object on standard output, times in
// seconds, rates in bytes/s; a table on standard error.
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/transport/courier/courier.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

Deadline soon() { return Deadline::in(60); }

template <typename Work>
Seconds median_time(int warm_up, int samples, Work work) {
  std::vector<Seconds> times;
  for (int i = -warm_up; i < samples; ++i) {
    const Seconds start = now_seconds();
    work();
    if (i >= 0) times.push_back(now_seconds() - start);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

struct Bench {
  Platform& platform;
  Json rows = Json::array();

  void row(const std::string& what, Bytes bytes, Seconds seconds, bool verified) {
    rows.push_back({{"what", what}, {"bytes", bytes}, {"seconds", seconds}, {"verified", verified}});
    std::fprintf(stderr, "%-58s %8s %9.2f us %8.2f GB/s %s\n", what.c_str(), format_bytes(bytes).c_str(), seconds * 1e6,
                 static_cast<double>(bytes) / seconds * 1e-9, verified ? "" : "WRONG BYTES");
  }

  bool intact(ConstRegion region, std::uint64_t seed) {
    const auto stream = platform.open_stream(region.place);
    return count_mismatches(*stream, region, seed, soon()) == 0;
  }

  void fill(Region region, std::uint64_t seed) {
    const auto stream = platform.open_stream(region.place);
    fill_pattern(*stream, region, seed);
    stream->synchronize(soon());
  }

  // One transfer at a time, completion seen by the host.
  void latency(const std::string& what, Transport& transport, Region to, ConstRegion from, Region source_owner,
               Place worker) {
    const auto stream = platform.open_stream(worker);
    fill(source_owner, 21);
    fill(to, 22);
    const int samples = to.bytes <= (1 << 20) ? 400 : 20;
    const Seconds time = median_time(50, samples, [&] {
      transport.put(to, from, *stream);
      transport.finish(*stream, soon());
    });
    row(what, to.bytes, time, intact(to, 21));
  }

  // A window of transfers, timed from the first to the last.
  void streaming(const std::string& what, const Path& path, Region to, Region from) {
    const auto transport = open_transport(path, {platform});
    const auto stream = platform.open_stream(find_mechanism(path.mechanism)->works_on(path));
    fill(from, 31);
    fill(to, 32);
    const int window = static_cast<int>(std::clamp<Bytes>((Bytes{2} << 30) / to.bytes, 4, 200));
    const Seconds time = median_time(1, 5, [&] {
      for (int i = 0; i < window; ++i) transport->put(to, from, *stream);
      transport->finish(*stream, soon());
    });
    row(what + " " + label(path), to.bytes, time / window, intact(to, 31));
  }
};

// The settings of the courier beside each other.
std::vector<CourierOptions> courier_variants() {
  std::vector<CourierOptions> variants(2);
  for (unsigned warps : {16u, 9u})
    for (Seconds rest : {0.3e-6, 0.4e-6, 0.5e-6, 0.6e-6, 0.7e-6, 0.8e-6, 1.0e-6}) {
      variants.emplace_back();
      variants.back().warps = warps;
      variants.back().put_rest = variants.back().get_rest = rest;
    }
  return variants;
}

void courier_rows(Bench& bench, Region far, const std::string& prefix, const std::vector<CourierOptions>& variants) {
  const Memory near_memory = bench.platform.allocate(host(0), 64 << 10, Allocation::pinned);
  const Region near = near_memory.region();
  for (const CourierOptions& options : variants)
    for (Bytes bytes : {8u, 64u, 256u, 1024u, 4096u, 16384u, 65536u}) {
      const std::string name = prefix + "courier warps=" + std::to_string(options.warps) +
                               " rest=" + std::to_string(std::lround(options.put_rest * 1e9)) + "ns";
      const Region a = near.slice(0, bytes);
      const Region b = far.slice(0, bytes);
      const auto to = open_courier({"courier", host(0), far.place, 1, {}}, {bench.platform}, options);
      bench.latency(name + " host>gpu", *to, b, a, a, host(0));
      const auto from = open_courier({"courier", far.place, host(0), 1, {}}, {bench.platform}, options);
      bench.latency(name + " gpu>host", *from, a, b, b, host(0));
    }
}

void memcpy_rows(Bench& bench, Region far) {
  cudaSetDevice(0);
  for (Allocation kind : {Allocation::pinned, Allocation::pageable}) {
    const Memory near_memory = bench.platform.allocate(host(0), 64 << 10, kind);
    const Region near = near_memory.region();
    const std::string name = kind == Allocation::pinned ? "cudaMemcpy pinned" : "cudaMemcpy pageable";
    for (Bytes bytes : {8u, 64u, 256u, 1024u, 4096u, 16384u, 65536u}) {
      bench.row(name + " host>gpu", bytes,
                median_time(50, 400, [&] { cudaMemcpy(far.data, near.data, bytes, cudaMemcpyDefault); }), true);
      bench.row(name + " gpu>host", bytes,
                median_time(50, 400, [&] { cudaMemcpy(near.data, far.data, bytes, cudaMemcpyDefault); }), true);
    }
    if (kind == Allocation::pageable) continue;
    const auto stream = bench.platform.open_stream(gpu(0));
    const auto native = static_cast<cudaStream_t>(stream->native());
    for (Bytes bytes : {8u, 4096u}) {
      bench.row("copy on a stream, then Stream::synchronize host>gpu", bytes,
                median_time(50, 400,
                            [&] {
                              stream->copy(far.slice(0, bytes), near.slice(0, bytes));
                              stream->synchronize(soon());
                            }),
                true);
      bench.row("copy on a stream, then cudaStreamSynchronize host>gpu", bytes,
                median_time(50, 400,
                            [&] {
                              stream->copy(far.slice(0, bytes), near.slice(0, bytes));
                              cudaStreamSynchronize(native);
                            }),
                true);
    }
  }
}

void peer_rows(Bench& bench, Region from, Region to, int processes, const std::string& prefix) {
  const Place a = from.place;
  const Place b = to.place;
  for (Bytes bytes : {Bytes{1} << 20, Bytes{16} << 20, Bytes{256} << 20}) {
    if (bytes > from.bytes) continue;
    const Region in = from.slice(0, bytes);
    const Region out = to.slice(0, bytes);
    std::vector<Path> paths = {{"copy_engine", a, b, processes, {}}};
    for (const char* blocks : {"16", "32", "132"})
      for (const char* direction : {"push", "pull"})
        paths.push_back({"sm_copy", a, b, processes, {{"blocks", blocks}, {"direction", direction}}});
    for (Path& path : paths) {
      path.processes = 1;  // the memory is open here already
      if (why_unavailable(path, {bench.platform})) continue;
      bench.streaming(prefix, path, out, in);
    }
  }
}

void staging_rows(Bench& bench, Region from, Region to) {
  const Memory near = bench.platform.allocate(host(0), Bytes{256} << 20, Allocation::pinned);
  for (Bytes bytes : {Bytes{16} << 20, Bytes{256} << 20}) {
    const Region in = from.slice(0, bytes);
    const Region out = to.slice(0, bytes);
    bench.streaming("limit", {"copy_engine", host(0), to.place, 1, {}}, out, near.region().slice(0, bytes));
    bench.streaming("limit", {"copy_engine", from.place, host(0), 1, {}}, near.region().slice(0, bytes), in);
    std::vector<Path> paths = {{"host_staged", from.place, to.place, 1, {{"variant", "whole"}}}};
    for (const char* chunk : {"1M", "2M", "4M", "8M"})
      paths.push_back(
          {"host_staged", from.place, to.place, 1, {{"chunk", chunk}, {"depth", "4"}, {"variant", "pipelined"}}});
    for (const Path& path : paths) {
      const auto transport = open_transport(path, {bench.platform});
      bench.latency("one " + label(path), *transport, out, in, in, from.place);
    }
  }
}

Json handle_json(const MemoryHandle& handle) {
  Json opaque = Json::array();
  for (const std::byte byte : handle.opaque) opaque.push_back(static_cast<int>(byte));
  return {{"kind", static_cast<int>(handle.kind)},
          {"place", text(handle.place)},
          {"bytes", handle.bytes},
          {"opaque", opaque}};
}

MemoryHandle handle_from(const Json& value, std::vector<Descriptor> descriptors) {
  MemoryHandle handle;
  handle.kind = static_cast<HandleKind>(value.at("kind").get<int>());
  handle.place = parse_place(value.at("place").get<std::string>());
  handle.bytes = value.at("bytes").get<Bytes>();
  for (std::size_t i = 0; i < handle.opaque.size(); ++i)
    handle.opaque[i] = static_cast<std::byte>(value.at("opaque").at(i).get<int>());
  if (!descriptors.empty()) handle.descriptor = std::move(descriptors.front());
  return handle;
}

// The second process: owns memory, hands it out, and says whether the bytes that came are right.
int second_process(int socket) {
  PeerChannel channel{Descriptor(socket)};
  const auto platform = open_cuda_platform();
  const int index = platform->gpu_count() - 1;
  std::vector<Memory> memories;
  for (Allocation allocation : {Allocation::gpu, Allocation::gpu_mapped}) {
    memories.push_back(platform->allocate(gpu(std::min(index, 1)), Bytes{256} << 20, allocation));
    const MemoryHandle handle = platform->export_memory(memories.back());
    channel.send(handle_json(handle), soon(),
                 handle.descriptor.open() ? std::vector<int>{handle.descriptor.number()} : std::vector<int>{});
  }
  const auto stream = platform->open_stream(memories.front().region().place);
  for (;;) {
    const Json question = channel.receive(Deadline::in(600)).first;
    if (!question.contains("memory")) return 0;
    const Region region = memories.at(question.at("memory").get<std::size_t>()).region();
    const Bytes wrong = count_mismatches(*stream, region.slice(0, question.at("bytes").get<Bytes>()),
                                         question.at("seed").get<std::uint64_t>(), soon());
    channel.send({{"wrong", wrong}}, soon());
  }
}

void two_process_rows(Bench& bench, PeerChannel& channel, Region from) {
  for (std::size_t memory = 0; memory < 2; ++memory) {
    auto [message, descriptors] = channel.receive(soon());
    const MemoryHandle handle = handle_from(message, std::move(descriptors));
    const Seconds start = now_seconds();
    const Memory opened = bench.platform.open_memory_for(handle, gpu(0));
    const std::string prefix = memory == 0 ? "two processes (cudaIpc)" : "two processes (descriptor)";
    bench.row(prefix + " open", handle.bytes, now_seconds() - start, true);
    peer_rows(bench, from, opened.region(), 1, prefix);
    channel.send({{"memory", memory}, {"bytes", Bytes{256} << 20}, {"seed", 31}}, soon());
    const auto wrong = channel.receive(soon()).first.at("wrong").get<Bytes>();
    bench.row(prefix + " as the owner sees it", handle.bytes, 1, wrong == 0);
    courier_rows(bench, opened.region(), prefix + " ", {CourierOptions{}});
  }
  channel.send({{"end", true}}, soon());
}

void print(const Bench& bench) {
  const Json result = {
      {"schema", "waywiser.gpu_benchmark"}, {"version", 1}, {"state", bench.platform.state()}, {"rows", bench.rows}};
  std::printf("%s\n", result.dump(1).c_str());
}

int courier_only() {
  const auto platform = open_cuda_platform();
  Bench bench{*platform};
  const Memory memory = platform->allocate(gpu(0), 1 << 20, Allocation::gpu);
  memcpy_rows(bench, memory.region());
  courier_rows(bench, memory.region(), "", courier_variants());
  memcpy_rows(bench, memory.region());
  print(bench);
  return 0;
}

int run(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--second-process") == 0) return second_process(std::atoi(argv[2]));
  if (const auto why = why_no_cuda()) {
    std::fprintf(stderr, "no GPU to measure: %s\n", why->c_str());
    return 2;
  }
  if (argc == 2 && std::strcmp(argv[1], "--courier") == 0) return courier_only();
  auto [mine, theirs] = PeerChannel::socket_pair();
  const pid_t child = ::fork();
  if (child == 0) {
    ::fcntl(theirs.number(), F_SETFD, 0);
    const std::string number = std::to_string(theirs.number());
    ::execl("/proc/self/exe", argv[0], "--second-process", number.c_str(), nullptr);
    ::_exit(127);
  }
  theirs = {};
  PeerChannel channel(std::move(mine));
  const auto platform = open_cuda_platform();
  Bench bench{*platform};
  const Memory first = platform->allocate(gpu(0), Bytes{256} << 20, Allocation::gpu);
  memcpy_rows(bench, first.region());
  courier_rows(bench, first.region(), "", {CourierOptions{}});
  const int other = platform->gpu_count() > 1 ? 1 : 0;
  const Memory second = platform->allocate(gpu(other), Bytes{256} << 20, Allocation::gpu);
  if (other == 1) peer_rows(bench, first.region(), second.region(), 1, "peer");
  staging_rows(bench, first.region(), second.region());
  two_process_rows(bench, channel, first.region());
  int status = 0;
  ::waitpid(child, &status, 0);
  print(bench);
  return 0;
}

}  // namespace
}  // namespace waywiser

int main(int argc, char** argv) {
  try {
    return waywiser::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_benchmark: %s\n", error.what());
    return 1;
  }
}
