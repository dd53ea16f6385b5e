#include "waywiser/comm/peer_memory/gpu_connections.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/defaults.hpp"

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

}  // namespace

GpuConnections::GpuConnections(Platform& platform, PeerMemory& peers, const Chooser* chooser, bool says_so)
    : platform_(platform), peers_(peers), chooser_(chooser), says_so_(says_so), pool_(platform) {}

Path GpuConnections::by_kernel(const Copy& copy) {
  return {"sm_copy",
          copy.source,
          copy.destination,
          2,
          {{"direction", copy.worker == copy.source ? "push" : "pull"},
           {"blocks", std::to_string(defaults::peer_kernel_blocks.value)},
           {"handle", "cuda_ipc"}}};
}

// A kernel if both ends are GPUs, else the worker's copy engine, or a pipeline through the host.
Path GpuConnections::choose_without_plan(const Copy& copy) const {
  const auto& [source, destination, worker, small] = copy;
  const Place other = worker == source || !source.is_gpu() ? destination : source;
  std::vector<Path> candidates = {
      {"copy_engine", worker, other, 2, {{"handle", "cuda_ipc"}}},
      {"host_staged",
       source,
       destination,
       2,
       {{"variant", "pipelined"},
        {"chunk", format_bytes(defaults::peer_staged_chunk)},
        {"depth", std::to_string(defaults::peer_staged_depth.value)},
        {"handle", "cuda_ipc"}}},
  };
  if (small && source.is_gpu() && destination.is_gpu()) candidates.insert(candidates.begin(), by_kernel(copy));
  std::string reasons;
  for (const Path& path : candidates) {
    const auto why = why_unavailable(path, {platform_});
    if (!why) return path;
    reasons += (reasons.empty() ? "" : "; ") + path.mechanism + ": " + *why;
  }
  throw Error(ErrorKind::unavailable, text(source) + " to " + text(destination) + ": " + reasons);
}

Path GpuConnections::choose(const PlanRow* row, const Copy& copy) {
  if (row != nullptr)
    if (auto path = Chooser::path_run_by(*row, copy.source, copy.destination, copy.worker)) return *path;
  Path path = choose_without_plan(copy);
  note_not_planned(row, copy, path);
  return path;
}

// Printed once for each pair: nothing falls back in silence.
void GpuConnections::note_not_planned(const PlanRow* row, const Copy& copy, const Path& taken) {
  if (chooser_ == nullptr || !not_planned_.insert({copy.source, copy.destination}).second) return;
  const std::string planned = row == nullptr ? "no row for two processes"
                                             : label(Chooser::path_for(*row, copy.source, copy.destination)) +
                                                   ", and no path that " + text(copy.worker) + " runs alone";
  std::fprintf(
      stderr,
      "waywiser: %s to %s: %s, which was not measured for this: the plan has %s; `waywiser tune` measures more\n",
      text(copy.source).c_str(), text(copy.destination).c_str(), label(taken).c_str(), planned.c_str());
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
  const Copy copy{source, destination, destination, true};
  const auto path =
      row == nullptr ? std::optional(by_kernel(copy)) : Chooser::path_run_by(*row, source, destination, destination);
  // Another mechanism than the plan's first may take longer than the reply that reading saves. The parts of a split
  // have streams of their own.
  if (!path || path->mechanism == "split") return nullptr;
  if (row != nullptr && row->way().name != path->mechanism) return nullptr;
  if (why_unavailable(*path, {platform_})) return nullptr;
  if (row == nullptr) note_not_planned(row, copy, *path);
  return known->second = &open(*path);
}

GpuConnections::Connection& GpuConnections::open(const Path& path) {
  if (chooser_ == nullptr && says_so_) say_that_there_is_no_plan();
  Connection& connection = connections_[pair_text(path) + " " + label(path)];
  if (!connection.transport) fill(connection, path);
  return connection;
}

void GpuConnections::fill(Connection& connection, const Path& path) {
  connection.path = path;
  connection.stream = platform_.open_stream(find_mechanism(path.mechanism)->works_on(path));
  connection.transport = open_transport(path, {platform_});
}

GpuConnections::Connection& GpuConnections::beside(Connection& first) {
  if (!first.beside) {
    auto second = std::make_unique<Connection>();
    fill(*second, first.path);
    first.beside = std::move(second);
  }
  return *first.beside;
}

Stream& GpuConnections::stream(Place gpu) {
  std::unique_ptr<Stream>& stream = streams_[gpu];
  if (!stream) stream = platform_.open_stream(gpu);
  return *stream;
}

}  // namespace waywiser
