// Times, on the GPUs of this machine: copies between GPUs beside the copy engine's own limit, and staging through host
// memory beside the slower PCIe direction. Within one process: `waywiser tune` measures two. One JSON object on
// standard output, times in seconds, rates in bytes/s; a table on standard error.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/kernels/pattern.hpp"
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
  const Json result = {{"schema", "waywiser.gpu_benchmark"},
                       {"version", 1},
                       {"state", Json::parse(bench.platform.state())},
                       {"rows", bench.rows}};
  std::printf("%s\n", result.dump(1).c_str());
}

int run() {
  if (const auto why = why_no_cuda()) {
    std::fprintf(stderr, "no GPU to measure: %s\n", why->c_str());
    return 2;
  }
  const auto platform = open_cuda_platform();
  Bench bench{*platform};
  const Memory first = platform->allocate(gpu(0), Bytes{256} << 20, Allocation::gpu);
  const int other = platform->gpu_count() > 1 ? 1 : 0;
  const Memory second = platform->allocate(gpu(other), Bytes{256} << 20, Allocation::gpu);
  if (other == 1) peer_rows(bench, first.region(), second.region());
  staging_rows(bench, first.region(), second.region());
  print(bench);
  return 0;
}

}  // namespace
}  // namespace waywiser

int main() {
  try {
    return waywiser::run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_benchmark: %s\n", error.what());
    return 1;
  }
}
