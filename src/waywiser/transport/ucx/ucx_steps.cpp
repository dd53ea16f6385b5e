#include "waywiser/transport/ucx/ucx_steps.hpp"

#include "waywiser/path/network_families.hpp"

namespace waywiser {
namespace {

constexpr std::string_view ucx_buffer = "a pinned buffer of UCX", socket_buffer = "a socket buffer of the kernel";

std::string card(const Path& path) {
  if (!path.has("device")) return "the network card";
  const std::vector<std::string> devices = devices_here(path.parameter("device"));
  std::string names;
  for (const std::string& device : devices) names += (names.empty() ? "" : " and ") + device;
  return names;
}

bool by_sockets(const Path& path) { return path.parameter("transports") == "network-tcp"; }

// A GPU's memory, unless the card reads and writes it itself.
bool copied_by_ucx(const Path& path, Place end) {
  const bool direct = path.has("gdr") && path.parameter("gdr") == "on" && !by_sockets(path);
  return end.is_gpu() && !direct;
}

PathSteps steps_between_machines(const Path& path) {
  PathSteps steps;
  const bool out = copied_by_ucx(path, path.source), in = copied_by_ucx(path, path.destination);
  StepEnd from{path.source}, to{path.destination};
  if (out) from = {path.source, ucx_buffer, true};
  if (in) to = {path.destination, ucx_buffer, true};
  if (out) steps.push_back(engine_copies(path.source, {path.source}, from));
  add_network(steps, path, from, to, 0);
  if (in) steps.push_back(engine_copies(path.destination, to, {path.destination}));
  return steps;
}

PathSteps steps_within_a_machine(const Path& path) {
  const std::string_view by = path.parameter("transports");
  const StepEnd from{path.source}, to{path.destination};
  const PathStep told{"the CPU", "tells the other process where the bytes are", {}, {}};
  if (by == "cma") return {told, {"the CPU of the other process", "copies out of this process", from, to}};
  if (by == "cuda_ipc") return {told, {"a copy engine that UCX chooses", "copies", from, to}};
  const std::string_view between = by == "tcp" ? socket_buffer : "a segment that both processes map";
  PathSteps steps;
  StepEnd before = from, after = to;
  if (path.source.is_gpu()) {
    before = {path.source, ucx_buffer, true};
    steps.push_back(engine_copies(path.source, from, before));
  }
  if (path.destination.is_gpu()) after = {path.destination, ucx_buffer, true};
  StepEnd middle = before;
  middle.what = between;
  steps.push_back(cpu_copies(before, middle));
  steps.push_back({"the CPU of the other process", "copies", middle, after});
  if (path.destination.is_gpu()) steps.push_back(engine_copies(path.destination, after, to));
  return steps;
}

}  // namespace

void add_network(PathSteps& steps, const Path& path, const StepEnd& from, const StepEnd& to, Bytes piece) {
  const bool sockets = by_sockets(path);
  StepEnd read = from, written = to;
  if (sockets) read.what = written.what = socket_buffer;
  steps.push_back(sockets ? cpu_copies(from, read, piece)
                          : PathStep{"the CPU", "posts the message to the card", {}, {}});
  steps.push_back({card(path), "reads", read, {}, piece});
  steps.push_back({"the network", "carries the bytes", {}, {}, piece});
  steps.push_back({"the card there", "writes", {}, written, piece});
  steps.push_back(sockets ? PathStep{"the CPU there", "copies", written, to, piece}
                          : PathStep{"the CPU there", "sees the end", {}, {}});
}

PathSteps ucx_steps(const Path& path, Bytes) {
  return path.source.other_machine() != path.destination.other_machine() ? steps_between_machines(path)
                                                                         : steps_within_a_machine(path);
}

}  // namespace waywiser
