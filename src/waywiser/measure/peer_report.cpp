#include "waywiser/measure/peer_report.hpp"

#include <cmath>
#include <cstdlib>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/peer_pair.hpp"
#include "waywiser/topology/graph.hpp"

namespace waywiser {
namespace {

constexpr const char* quantities[] = {"one_way", "both_ways", "latency_gpu", "latency_cpu"};

Json empty_matrix(int gpus) {
  const auto size = static_cast<std::size_t>(gpus);
  return Json(std::vector<std::vector<Json>>(size, std::vector<Json>(size)));
}

// Null for what could not be timed.
Json number(std::optional<double> value, double unit) { return value ? Json(*value * unit) : Json(); }

void enter(Json& report, const char* access, int source, int destination, const PeerTimes& times) {
  const auto row = static_cast<std::size_t>(source);
  const auto column = static_cast<std::size_t>(destination);
  report["one_way"][access][row][column] = number(times.one_way, 1e-9);
  report["both_ways"][access][row][column] = number(times.both_ways, 1e-9);
  report["latency_gpu"][access][row][column] = number(times.latency_gpu, 1e6);
  report["latency_cpu"][access][row][column] = number(times.latency_cpu, 1e6);
}

void enter_nvlinks(Json& report, const Topology& topology, int source, int destination, const PeerTimes& times) {
  if (!times.one_way || source == destination) return;
  const auto count = count_nvlinks(topology, source, destination, *times.one_way);
  if (!count) return;
  const auto row = static_cast<std::size_t>(source);
  const auto column = static_cast<std::size_t>(destination);
  report["nvlinks"]["stated"][row][column] = count->stated;
  report["nvlinks"]["inferred"][row][column] = count->inferred;
  report["nvlinks"]["mismatch"][row][column] = count->mismatch;
}

Json empty_report(const Platform& platform, const Topology& topology) {
  const int gpus = platform.gpu_count();
  Json report = {{"machine", topology.name},
                 {"fingerprint", fingerprint(topology)},
                 {"backend", platform.backend()},
                 {"simulated", platform.backend() == "virtual_gpu"},
                 {"connectivity", empty_matrix(gpus)}};
  for (const char* quantity : quantities) report[quantity] = {{"off", empty_matrix(gpus)}, {"on", empty_matrix(gpus)}};
  for (const char* key : {"stated", "inferred", "mismatch"}) report["nvlinks"][key] = empty_matrix(gpus);
  report["notes"] = Json::array();
  return report;
}

}  // namespace

std::optional<NvlinkCount> count_nvlinks(const Topology& topology, int source, int destination, BytesPerSecond rate) {
  const Graph graph(topology);
  const std::string from = text(gpu(source));
  const std::string to = text(gpu(destination));
  if (topology.find(from) == nullptr || topology.find(to) == nullptr) return {};
  const std::vector<Hop> hops = graph.walk(from, to, Links::gpu_fabric);
  if (hops.empty()) return {};
  const Link& link = hops.front().link;
  const std::optional<BytesPerSecond> most = link.achievable ? link.achievable : link.nominal;
  if (!most || *most <= 0 || link.count < 1) return {};
  NvlinkCount count;
  count.stated = graph.gpu_links(from, to).count;
  count.inferred = static_cast<int>(std::lround(rate / (*most / link.count)));
  const int apart = std::abs(count.inferred - count.stated);
  count.mismatch = apart > 1 || 4 * apart > count.stated;
  return count;
}

Json peer_report(Platform& platform, const Topology& topology, Bytes bytes, const ProgressCallback& progress) {
  const int gpus = platform.gpu_count();
  Json report = empty_report(platform, topology);
  int done = 0;
  for (int source = 0; source < gpus; ++source)
    for (int destination = 0; destination < gpus; ++destination) {
      const std::string pair = text(gpu(source)) + ">" + text(gpu(destination));
      if (progress && !progress({done++, gpus * gpus, 0, "peer report " + pair, std::nullopt})) {
        report["interrupted"] = true;
        return report;
      }
      const bool reachable = !platform.why_no_peer_access(source, destination);
      report["connectivity"][static_cast<std::size_t>(source)][static_cast<std::size_t>(destination)] = reachable;
      for (const bool on : {false, true}) {
        if (on && !reachable) continue;
        try {
          const PeerTimes times = time_peer_pair(platform, source, destination, bytes, on);
          enter(report, on ? "on" : "off", source, destination, times);
          if (on) enter_nvlinks(report, topology, source, destination, times);
        } catch (const Error& error) {
          if (error.kind() == ErrorKind::interrupted) throw;
          report["notes"].push_back(pair + ", peer access " + (on ? "on: " : "off: ") + error.what());
        }
      }
    }
  return report;
}

}  // namespace waywiser
