#include <algorithm>
#include <array>

#include "waywiser/base/error.hpp"
#include "waywiser/path/network_families.hpp"
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
  if (transfer.path.whole().processes == 2) return "memory of another process cannot be mapped";
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

Reason over_network(const TimedTransfer& transfer, std::string_view transports) {
  if (!transfer.remote()) return std::string(transports) + " is between machines";
  if (transfer.node().nics(transfer.from.device, true).empty()) return "the node has no NIC";
  for (const Spot& end : {transfer.from, transfer.to})
    if (transfer.path.on("gdr") && !transfer.world.node(end.node).direct_rdma(end.device))
      return "the machine file says that NICs cannot reach the memory of " + end.device;
  if (transports == "network-tcp")
    return transfer.path.on("gdr") ? Reason("GPUDirect RDMA needs RDMA, which TCP is not") : std::nullopt;
  for (const Spot& end : {transfer.from, transfer.to})
    for (const std::string& nic : rails_at(transfer, end))
      if (const NodeModel& node = transfer.world.node(end.node); !node.rdma(nic))
        return std::string(transports) + " needs RDMA, which " + node.topology().at(nic).name + " of " +
               node.topology().name + " has not: its network is plain Ethernet; network-tcp goes there";
  return std::nullopt;
}

Reason with_ucx(const TimedTransfer& transfer) {
  const std::string_view transports = transfer.path.one_of(
      "transports",
      {"ib", "roce", "rc", "dc", "ud", "network-tcp", "posix", "sysv", "cma", "tcp", "cuda_ipc", "cuda_copy"});
  if (std::ranges::count(between_machines, transports) != 0) return over_network(transfer, transports);
  if (transfer.remote()) return std::string(transports) + " is within one machine";
  if (transfer.path.whole().processes != 2) return "between two processes only";
  if (transports == "cuda_ipc")
    return is_gpu(transfer.from) && is_gpu(transfer.to) ? direct(transfer) : "not between two GPUs";
  const bool gpu = is_gpu(transfer.from) || is_gpu(transfer.to);
  if (gpu && transports != "cuda_copy" && transports != "tcp")
    return std::string(transports) + " carries host memory only";
  if (!gpu && transports == "cuda_copy") return "no GPU takes part";
  return std::nullopt;
}

Reason all_ways(const TimedTransfer& transfer) {
  if (auto why = needs_gpu(transfer)) return why;
  for (const Path& way : split_ways(transfer.path.whole()))
    if (auto why = why_unavailable({transfer.world, way, transfer.from, transfer.to, transfer.bytes}))
      return way.mechanism + ": " + *why;
  return std::nullopt;
}

// Whether both processes let one GPU run kernels (a copy within a GPU is one, and so is what the driver does for
// ordinary memory): its processes run one after the other. Copy engines do not take part in that.
bool take_turns(const TimedTransfer& transfer) {
  if (transfer.path.whole().processes != 2 || transfer.remote()) return false;
  const std::string_view mechanism = transfer.path.whole().mechanism;
  const bool same = transfer.from == transfer.to;
  if (!is_gpu(transfer.from) && !is_gpu(transfer.to)) return false;
  if (is_gpu(transfer.from) && is_gpu(transfer.to) && !same) return false;
  if (mechanism == "copy_engine" || mechanism == "ucx") return same;
  return mechanism == "sm_copy" || (mechanism == "host_staged" && transfer.path.parameter("variant") == "pageable");
}

Program ucx(const TimedTransfer& transfer) {
  if (transfer.remote() && transfer.path.has("share")) return ucx_shared_program(transfer);
  return transfer.remote() ? ucx_remote_program(transfer) : ucx_local_program(transfer);
}

Reason staged(const TimedTransfer& transfer) {
  if (!transfer.remote()) return "it is for the route between two machines; within one there is host_staged";
  if (!is_gpu(transfer.from) && !is_gpu(transfer.to)) return "no GPU takes part: ucx sends host memory itself";
  if (transfer.path.has("device") && rails_of(transfer.path.parameter("device")).size() > 1)
    return "a message staged through host memory goes over one rail";
  return with_ucx(transfer);
}

// How the memory of another process was opened makes no difference to the time of a copy: on the machine of
// recorded-4xh200 the median ratio over 681 points is 1.00.
void read_handle(const TimedTransfer& transfer) {
  if (transfer.path.has("handle")) transfer.path.one_of("handle", {"cuda_ipc", "descriptor"});
}

// A parameter that the model does not read would change nothing, in silence.
void check_all_read(const TimedTransfer& transfer) {
  if (transfer.path.whole().mechanism != "ucx" && !transfer.path.whole().mechanism.starts_with("ucx_"))
    read_handle(transfer);
  const std::vector<std::string> unread = transfer.path.unread();
  if (unread.empty()) return;
  throw Error(ErrorKind::invalid_input, label(transfer.path.whole()) + ": parameter '" + unread.front() +
                                            "' has no meaning for this transfer in the simulator");
}

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
  const Model* model = find(transfer.path.whole().mechanism);
  if (model == nullptr) return "the simulator has no model of " + transfer.path.whole().mechanism;
  return model->why_not(transfer);
}

Program program(const TimedTransfer& transfer) {
  if (const auto why = why_unavailable(transfer))
    throw Error(ErrorKind::unavailable, label(transfer.path.whole()) + ": " + *why);
  transfer.path.forget_reads();
  Program found = find(transfer.path.whole().mechanism)->program(transfer);
  check_all_read(transfer);
  if (take_turns(transfer)) found.turn = transfer.cost("gpu.turn");
  return found;
}

}  // namespace waywiser::sim
