#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/models.hpp"
#include "waywiser/topology/route.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser::sim {
namespace {

using Reason = std::optional<std::string>;

bool is_gpu(const Spot& spot) { return spot.device.starts_with("gpu"); }

Reason one_node(const TimedTransfer& transfer) {
  if (transfer.remote()) return "works within one machine only";
  return std::nullopt;
}

Reason peer(const TimedTransfer& transfer, const std::string& a, const std::string& b) {
  if (!a.starts_with("gpu") || !b.starts_with("gpu") || a == b) return std::nullopt;
  return why_no_peer_access(transfer.topology(), a, b);
}

Reason needs_gpu(const TimedTransfer& transfer) {
  if (auto why = one_node(transfer)) return why;
  if (!is_gpu(transfer.from) && !is_gpu(transfer.to)) return "no GPU takes part";
  return std::nullopt;
}

Reason direct(const TimedTransfer& transfer) {
  if (auto why = needs_gpu(transfer)) return why;
  return peer(transfer, transfer.from.device, transfer.to.device);
}

Reason between_hosts(const TimedTransfer& transfer) {
  if (is_gpu(transfer.from) || is_gpu(transfer.to)) return "a GPU takes part";
  return one_node(transfer);
}

Reason host_and_gpu(const TimedTransfer& transfer) {
  if (is_gpu(transfer.from) == is_gpu(transfer.to)) return "not between host memory and a GPU";
  return one_node(transfer);
}

Reason bar(const TimedTransfer& transfer) {
  if (transfer.path.processes == 2) return "memory of another process cannot be mapped";
  if (transfer.cost("bar.write_rate") <= 0) return "this machine has no GDRCopy";
  return host_and_gpu(transfer);
}

Reason relayed(const TimedTransfer& transfer) {
  const std::string via(transfer.path.parameter("via"));
  if (!is_gpu(transfer.from) || !is_gpu(transfer.to)) return "not between two GPUs";
  if (transfer.topology().find(via) == nullptr) return via + " is no GPU of this machine";
  if (auto why = peer(transfer, transfer.from.device, via)) return why;
  if (auto why = peer(transfer, via, transfer.to.device)) return why;
  return one_node(transfer);
}

// ib and roce stand for whichever of rc, dc and ud UCX takes there.
constexpr std::array<std::string_view, 6> between_machines{"ib", "roce", "rc", "dc", "ud", "network-tcp"};

Reason with_ucx(const TimedTransfer& transfer) {
  const std::string_view transports = transfer.path.parameter("transports");
  const bool network = std::ranges::count(between_machines, transports) != 0;
  if (transfer.remote() != network)
    return std::string(transports) + (network ? " is between machines" : " is within one machine");
  if (!network && transfer.path.processes != 2) return "between two processes only";
  if (network && transfer.node().nics(transfer.from.device, true).empty()) return "the node has no NIC";
  if (transports == "cuda_ipc") return direct(transfer);
  return std::nullopt;
}

Reason all_ways(const TimedTransfer& transfer) {
  if (auto why = needs_gpu(transfer)) return why;
  for (const Path& way : split_ways(transfer.path))
    if (auto why = why_unavailable({transfer.world, way, transfer.from, transfer.to, transfer.bytes}))
      return way.mechanism + ": " + *why;
  return std::nullopt;
}

// Whether both processes let one GPU run kernels (a copy within a GPU is one, and so is what the driver does for
// ordinary memory): its processes run one after the other. Copy engines do not take part in that.
bool take_turns(const TimedTransfer& transfer) {
  if (transfer.path.processes != 2 || transfer.remote()) return false;
  const std::string_view mechanism = transfer.path.mechanism;
  const bool same = transfer.from == transfer.to;
  if (!is_gpu(transfer.from) && !is_gpu(transfer.to)) return false;
  if (is_gpu(transfer.from) && is_gpu(transfer.to) && !same) return false;
  if (mechanism == "copy_engine" || mechanism == "ucx") return same;
  return mechanism == "sm_copy" || (mechanism == "host_staged" && transfer.path.parameter("variant") == "pageable");
}

Program ucx(const TimedTransfer& transfer) {
  return transfer.remote() ? ucx_remote_program(transfer) : ucx_local_program(transfer);
}

Reason staged(const TimedTransfer& transfer) {
  if (!transfer.remote()) return "it is for the road between two machines; within one there is host_staged";
  if (!is_gpu(transfer.from) && !is_gpu(transfer.to)) return "no GPU takes part: ucx sends host memory itself";
  return with_ucx(transfer);
}

// Waywiser spreads a message over rails itself then, with shares that it has measured.
bool shared_out(const Path& path) { return path.has("share") && path.mechanism.starts_with("ucx"); }

constexpr std::array<Model, 10> all{{{"copy_engine", direct, copy_engine_program},
                                     {"sm_copy", direct, sm_copy_program},
                                     {"host_copy", between_hosts, host_copy_program},
                                     {"host_staged", needs_gpu, host_staged_program},
                                     {"bar_copy", bar, bar_copy_program},
                                     {"courier", host_and_gpu, courier_program},
                                     {"relay", relayed, relay_program},
                                     {"split", all_ways, split_program},
                                     {"ucx", with_ucx, ucx},
                                     {"ucx_staged", staged, ucx_staged_program}}};

const Model* find(std::string_view mechanism) {
  const auto found = std::ranges::find(all, mechanism, &Model::mechanism);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::string TimedTransfer::unit(const Spot& spot, const std::string& what) const {
  return std::to_string(spot.node) + ":" + spot.device + "." + what;
}

std::string TimedTransfer::cpu() const {
  const std::string name = std::to_string(from.node) + ":cpu of " + from.device + ">" + to.device;
  return lane == 0 ? name : name + " #" + std::to_string(lane);
}

std::span<const Model> models() { return all; }

std::optional<std::string> why_unavailable(const TimedTransfer& transfer) {
  const Model* model = find(transfer.path.mechanism);
  if (model == nullptr) return "the simulator has no model of " + transfer.path.mechanism;
  if (shared_out(transfer.path)) return "the simulator has no model of shares; nics=2 stands for two rails";
  return model->why_not(transfer);
}

Program program(const TimedTransfer& transfer) {
  if (const auto why = why_unavailable(transfer))
    throw Error(ErrorKind::unavailable, label(transfer.path) + ": " + *why);
  Program found = find(transfer.path.mechanism)->program(transfer);
  if (take_turns(transfer)) found.turn = transfer.cost("gpu.turn");
  return found;
}

}  // namespace waywiser::sim
