#include "waywiser/comm/peer_memory/gpu_connections.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser {
namespace {

// Printed once per program, since the defaults are not measured.
void say_that_there_is_no_plan() {
  static std::once_flag said;
  std::call_once(said, [] {
    std::fputs("waywiser: no plan: GPU memory goes by kernels and copy engines; `waywiser tune` finds better ways\n",
               stderr);
  });
}

bool works_on_only(const Path& path, Place worker) {
  if (path.mechanism == "split")
    return std::ranges::all_of(split_ways(path), [&](const Path& way) { return works_on_only(way, worker); });
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  return mechanism != nullptr && mechanism->works_on(path) == worker;
}

}  // namespace

GpuConnections::GpuConnections(Platform& platform, PeerMemory& peers, const Chooser* chooser, bool says_so)
    : platform_(platform), peers_(peers), chooser_(chooser), says_so_(says_so), pool_(platform) {}

// A kernel if both ends are GPUs, else the worker's copy engine, or a pipeline through the host.
Path GpuConnections::choose_without_plan(const Copy& copy) const {
  const auto& [source, destination, worker, small] = copy;
  const Place other = worker == source || !source.is_gpu() ? destination : source;
  const Path candidates[] = {
      {"sm_copy",
       source,
       destination,
       2,
       {{"direction", copy.worker == copy.source ? "push" : "pull"}, {"blocks", "16"}, {"handle", "cuda_ipc"}}},
      {"copy_engine", worker, other, 2, {{"handle", "cuda_ipc"}}},
      {"host_staged",
       source,
       destination,
       2,
       {{"variant", "pipelined"}, {"chunk", "2M"}, {"depth", "4"}, {"handle", "cuda_ipc"}}},
  };
  std::string reasons;
  for (const Path& path : candidates) {
    if (path.mechanism == "sm_copy" && !(small && source.is_gpu() && destination.is_gpu())) continue;
    const auto why = why_unavailable(path, {platform_});
    if (!why) return path;
    reasons += (reasons.empty() ? "" : "; ") + path.mechanism + ": " + *why;
  }
  throw Error(ErrorKind::unavailable, text(source) + " to " + text(destination) + ": " + reasons);
}

// This rank works alone, so the plan's path must be one-sided and its kernels must run on the worker; otherwise its
// best such rival is used.
Path GpuConnections::choose(const PlanRow* row, const Copy& copy) const {
  if (row == nullptr) return choose_without_plan(copy);
  auto path = Chooser::one_sided_path_for(*row, copy.source, copy.destination);
  if (path && path->mechanism == "sm_copy")
    path->parameters["direction"] = copy.worker == copy.source ? "push" : "pull";
  return path && works_on_only(*path, copy.worker) ? *path : choose_without_plan(copy);
}

GpuConnections::Connection& GpuConnections::connection(Place source, Place destination, Bytes bytes, Place worker) {
  const PlanRow* row =
      chooser_ == nullptr ? nullptr : chooser_->choose(source, destination, 2, Operation::latency, bytes);
  const Copy copy{source, destination, worker, bytes <= defaults::copies_by_kernel};
  Connection*& known = known_[{row, copy}];
  if (known == nullptr) known = &open(choose(row, copy));
  return *known;
}

GpuConnections::Connection* GpuConnections::reading_connection(Place source, Place destination, Bytes bytes) {
  const PlanRow* row =
      chooser_ == nullptr ? nullptr : chooser_->choose(source, destination, 2, Operation::latency, bytes);
  const auto [known, is_new] = reading_.try_emplace({row, source, destination}, nullptr);
  if (!is_new) return known->second;
  Path path = choose(row, {source, destination, source, true});
  if (path.mechanism != "sm_copy") return nullptr;
  path.parameters["direction"] = "pull";
  if (!why_unavailable(path, {platform_})) known->second = &open(path);
  return known->second;
}

GpuConnections::Connection& GpuConnections::open(const Path& path) {
  if (chooser_ == nullptr && says_so_) say_that_there_is_no_plan();
  Connection& connection = connections_[pair_text(path) + " " + label(path)];
  if (!connection.transport) {
    connection.stream = platform_.open_stream(find_mechanism(path.mechanism)->works_on(path));
    connection.transport = open_transport(path, {platform_});
  }
  return connection;
}

Stream& GpuConnections::stream(Place gpu) {
  std::unique_ptr<Stream>& stream = streams_[gpu];
  if (!stream) stream = platform_.open_stream(gpu);
  return *stream;
}

}  // namespace waywiser
