// Times, on the GPUs of this machine: the courier beside cudaMemcpy, copies between GPUs beside the copy engine's own
// limit, and staging through host memory beside the slower PCIe direction; with --courier, only the courier and its
// settings. Within one process: `waywiser tune` measures two. One JSON object on standard output, times in seconds,
// rates in bytes/s; a table on standard error.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/transport/courier/courier.hpp"
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

void peer_rows(Bench& bench, Region from, Region to) {
  const Place a = from.place;
  const Place b = to.place;
  for (Bytes bytes : {Bytes{1} << 20, Bytes{16} << 20, Bytes{256} << 20}) {
    if (bytes > from.bytes) continue;
    const Region in = from.slice(0, bytes);
    const Region out = to.slice(0, bytes);
    std::vector<Path> paths = {{"copy_engine", a, b, 1, {}}};
    for (const char* blocks : {"16", "32", "132"})
      for (const char* direction : {"push", "pull"})
        paths.push_back({"sm_copy", a, b, 1, {{"blocks", blocks}, {"direction", direction}}});
    for (const Path& path : paths) {
      if (why_unavailable(path, {bench.platform})) continue;
      bench.streaming("peer", path, out, in);
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
  if (const auto why = why_no_cuda()) {
    std::fprintf(stderr, "no GPU to measure: %s\n", why->c_str());
    return 2;
  }
  if (argc == 2 && std::strcmp(argv[1], "--courier") == 0) return courier_only();
  const auto platform = open_cuda_platform();
  Bench bench{*platform};
  const Memory first = platform->allocate(gpu(0), Bytes{256} << 20, Allocation::gpu);
  memcpy_rows(bench, first.region());
  courier_rows(bench, first.region(), "", {CourierOptions{}});
  const int other = platform->gpu_count() > 1 ? 1 : 0;
  const Memory second = platform->allocate(gpu(other), Bytes{256} << 20, Allocation::gpu);
  if (other == 1) peer_rows(bench, first.region(), second.region());
  staging_rows(bench, first.region(), second.region());
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
