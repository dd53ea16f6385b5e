#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "waywiser/base/error.hpp"
#include "waywiser/path/network_families.hpp"
#include "waywiser/sim/models.hpp"
#include "waywiser/transport/split/split.hpp"

// UCX between two machines, as its protocols go (docs of OpenUCX, "Protocols"; UCX-Py docs for the threshold):
//   eager, below ucx.rndv_threshold where it is faster (UCX, ucp_request_send_start and proto_select.c: a message of
//     exactly the threshold is a rendezvous): a copy of GPU memory into a host buffer by the cheapest that is
//     on (BAR loads, or the copy engine; or none: the NIC reads GPU memory), the wire, at the other end a copy out of
//     the host buffer;
//   rendezvous: a handshake of one round trip, then
//     with GPUDirect RDMA (gdr=on): the NICs read and write GPU memory, over as many rails as nics says, but no more
//       than make the message faster and none that is over 4 times slower than the best (UCX_MAX_RNDV_RAILS,
//       UCX_MULTI_LANE_MAX_RATIO), each with a share of the bytes that goes with its slowest hop, and of at least
//       ucx.rail_bytes; what a further rail takes of the CPU is not known and left out;
//     without: fragments of ucx.fragment bytes through host memory, copies and wire overlapped, each over one rail.
//   T(n) = ucx.issue + sum of legs + ucx.overhead, and for memory of a GPU ucx.gpu_send and ucx.gpu_receive; wire:
//   nic.hold + nic.latency + switches + n / slowest hop.
// If the nodes differ, each end has its own costs. device=A/B: over these NICs, instead of the nearest.
// share=75+25: waywiser itself cuts the message and sends each part over its own rail of device=A+B, as one message.
// network-tcp: the kernel's TCP: tcp.latency beside the NIC's own and at most tcp.rate, never from GPU memory.

namespace waywiser::sim {
namespace {

constexpr double most_lane_ratio = 4;

struct Sides {
  bool gdr = false, gdrcopy = false, tcp = false;
  bool from_gpu = false, to_gpu = false;
};

Sides sides_of(const TimedTransfer& transfer) {
  Sides sides;
  sides.tcp = transfer.path.parameter("transports") == "network-tcp";
  sides.gdr = transfer.path.on("gdr");
  sides.gdrcopy = transfer.path.on("gdrcopy");
  sides.from_gpu = transfer.from.device.starts_with("gpu");
  sides.to_gpu = transfer.to.device.starts_with("gpu");
  return sides;
}

Spot host_of(const TimedTransfer& transfer, const Spot& spot) {
  return {spot.node, transfer.world.node(spot.node).host_beside(spot.device)};
}

// The CPU thread of a node that drives UCX: copies that it waits for keep it busy.
std::string progress(const TimedTransfer& transfer, const Spot& spot) {
  return transfer.unit(spot.node == transfer.from.node ? transfer.from : transfer.to, "ucx");
}

Leg wire(const TimedTransfer& transfer, const Spot& from, const Spot& to, const std::string& out, const std::string& in,
         const Sides& sides) {
  Leg leg;
  TimedRoute route = transfer.world.route(from.node, from.device, out);
  extend(route, transfer.world.cross(from.node, out, to.node, in, sides.tcp));
  extend(route, transfer.world.route(to.node, in, to.device));
  leg.unit = transfer.unit({from.node, out}, "send");
  leg.hold = transfer.cost("nic.hold");
  leg.uses = route.uses;
  leg.cap = route.cap;
  leg.latency = route.latency;
  if (from.device.starts_with("gpu")) leg.latency += transfer.cost(from, "nic.gpu_read");
  if (to.device.starts_with("gpu")) leg.latency += transfer.cost(to, "nic.gpu_write");
  return leg;
}

// By the CPU, which waits for it: BAR stores or loads, or a copy engine with all of UCX's overhead.
Leg small_copy(const TimedTransfer& transfer, const Spot& from, const Spot& to, bool gdrcopy) {
  const bool read = from.device.starts_with("gpu");
  const auto bytes = static_cast<double>(transfer.bytes);
  const Seconds bar_start = transfer.cost(from, read ? "bar.read_start" : "bar.write_start");
  const BytesPerSecond bar_rate = transfer.cost(from, read ? "bar.read_rate" : "bar.write_rate");
  Leg leg;
  leg.unit = progress(transfer, read ? from : to);
  leg.uses = transfer.world.route(from.node, from.device, to.device, Links::no_gpu_fabric).uses;
  const bool bar = gdrcopy && bar_rate > 0 && bar_start + bytes / bar_rate < transfer.cost(from, "ucx.copy");
  leg.hold = bar ? bar_start : transfer.cost(from, "ucx.copy");
  if (!read) leg.hold += transfer.cost(to, "ucx.gpu_receive");
  if (bar) leg.cap = bar_rate;
  return leg;
}

BytesPerSecond slowest(const TimedTransfer& transfer, const Leg& leg) {
  BytesPerSecond rate = leg.cap;
  for (const Use& use : leg.uses) rate = std::min(rate, transfer.world.capacity(use.link) / use.weight);
  return rate;
}

Seconds estimate(const TimedTransfer& transfer, const Leg& leg, Bytes bytes) {
  return leg.hold + leg.latency + static_cast<double>(bytes) / slowest(transfer, leg);
}

// The time of one message on hops that only its own parts share; exact for a message of one chunk.
Seconds estimate(const TimedTransfer& transfer, const Program& program) {
  Seconds sum = 0, longest = 0;
  for (const Leg& leg : program.legs) sum += estimate(transfer, leg, transfer.bytes);
  std::map<LinkId, double> loads;
  for (const Program& part : program.parts)
    for (const Leg& leg : part.legs)
      for (const Use& use : leg.uses) loads[use.link] += use.weight * static_cast<double>(part.share);
  for (const Program& part : program.parts) {
    Seconds one = part.first ? part.first->hold + part.first->latency : 0;
    for (const Leg& leg : part.legs) {
      Seconds flow = static_cast<double>(part.share) / slowest(transfer, leg);
      for (const Use& use : leg.uses) flow = std::max(flow, loads.at(use.link) / transfer.world.capacity(use.link));
      one += leg.hold + leg.latency + flow;
    }
    longest = std::max(longest, one);
  }
  return std::max(sum, longest);
}

Program eager(const TimedTransfer& transfer, const Sides& sides, const std::string& out, const std::string& in) {
  const Spot near = host_of(transfer, transfer.from), far = host_of(transfer, transfer.to);
  Program program;
  const Leg staged = wire(transfer, near, far, out, in, sides);
  if (!sides.from_gpu) {
    program.legs.push_back(staged);
  } else {
    const Leg copy = small_copy(transfer, transfer.from, near, sides.gdrcopy);
    const Leg direct = wire(transfer, transfer.from, far, out, in, sides);
    const Seconds copied = estimate(transfer, copy, transfer.bytes) + estimate(transfer, staged, transfer.bytes);
    const bool reads = sides.gdr && estimate(transfer, direct, transfer.bytes) < copied;
    if (!reads) program.legs.push_back(copy);
    program.legs.push_back(reads ? direct : staged);
  }
  if (sides.to_gpu) program.legs.push_back(small_copy(transfer, far, transfer.to, sides.gdrcopy));
  return program;
}

Leg staging(const TimedTransfer& transfer, const Spot& from, const Spot& to) {
  Leg leg = engine_leg(transfer, from, to, Links::no_gpu_fabric);
  leg.latency += transfer.cost(from, "ucx.copy");
  return leg;
}

// One rail of a rendezvous.
Program rail(const TimedTransfer& transfer, const Sides& sides, const std::string& out, const std::string& in) {
  Program program;
  const bool direct_from = !sides.from_gpu || sides.gdr, direct_to = !sides.to_gpu || sides.gdr;
  const Spot near = direct_from ? transfer.from : host_of(transfer, transfer.from);
  const Spot far = direct_to ? transfer.to : host_of(transfer, transfer.to);
  if (!direct_from) program.legs.push_back(staging(transfer, transfer.from, near));
  program.legs.push_back(wire(transfer, near, far, out, in, sides));
  if (!direct_to) program.legs.push_back(staging(transfer, far, transfer.to));
  if (program.legs.size() > 1) {
    program.chunk = static_cast<Bytes>(transfer.cost("ucx.fragment"));
    program.depth = static_cast<int>(transfer.cost("ucx.fragments"));
  }
  const Leg& net = program.legs[direct_from ? 0 : 1];
  Leg handshake;
  handshake.unit = progress(transfer, transfer.to);
  handshake.hold = transfer.cost(transfer.to, "ucx.rendezvous");
  if (sides.to_gpu) handshake.hold += transfer.cost(transfer.to, "ucx.gpu_receive");
  handshake.latency = 2 * net.latency;
  // Once for the message, not for each fragment.
  program.first = std::move(handshake);
  return program;
}

struct RatedRail {
  BytesPerSecond rate;
  Program program;
};

// Over the first `count` rails, each with a share of at least `piece` bytes, or of whole pieces.
Program over_rails(const TimedTransfer& transfer, std::span<const RatedRail> rails, double piece, bool whole) {
  const BytesPerSecond best = std::ranges::max(rails, {}, &RatedRail::rate).rate;
  const auto slow = [&](const RatedRail& one) { return one.rate * most_lane_ratio < best; };
  BytesPerSecond sum = 0;
  for (const RatedRail& one : rails) sum += slow(one) ? 0 : one.rate;
  Program program;
  Bytes left = transfer.bytes;
  for (const RatedRail& one : rails) {
    const double part = static_cast<double>(transfer.bytes) * one.rate / sum;
    const double share = whole ? piece * std::round(part / piece) : std::ceil(part);
    const Bytes bytes = &one == &rails.back() ? left : std::min(left, static_cast<Bytes>(share));
    if (slow(one) || bytes == 0) continue;
    left -= bytes;
    program.parts.push_back(one.program);
    program.parts.back().share = bytes;
  }
  if (left > 0) program.parts.front().share += left;
  // One handshake for the message: the other rails only wait as long.
  for (std::size_t i = 1; i < program.parts.size(); ++i) program.parts[i].first->unit.clear();
  return program;
}

// Over as many rails as make the message fastest.
Program rendezvous(const TimedTransfer& transfer, const Sides& sides, const std::vector<std::string>& out,
                   const std::vector<std::string>& in) {
  const bool staged = !sides.gdr && (sides.from_gpu || sides.to_gpu);  // a fragment goes over one rail
  const double piece = transfer.cost(staged ? "ucx.fragment" : "ucx.rail_bytes");
  const auto pieces = static_cast<std::size_t>(static_cast<double>(transfer.bytes) / piece);
  const std::size_t most = std::min({out.size(), in.size(), std::max<std::size_t>(1, pieces)});
  std::vector<RatedRail> rails;
  std::optional<Program> fastest;
  for (std::size_t i = 0; i < most; ++i) {
    RatedRail one{no_cap, rail(transfer, sides, out[i], in[i])};
    for (const Leg& leg : one.program.legs) one.rate = std::min(one.rate, slowest(transfer, leg));
    rails.push_back(std::move(one));
    Program program = over_rails(transfer, rails, piece, staged);
    if (!fastest || estimate(transfer, program) <= estimate(transfer, *fastest)) fastest = std::move(program);
  }
  return *fastest;
}

// "mlx5_0:1" -> the NIC of that name.
std::string nic_named(const Topology& topology, std::string_view device) {
  const std::string name(device.substr(0, device.find(':')));
  for (const std::string& nic : topology.ids("nic"))
    if (topology.at(nic).name == name) return nic;
  throw Error(ErrorKind::unavailable, "machine " + topology.name + " has no NIC " + name);
}

}  // namespace

std::vector<std::string> rails_at(const TimedTransfer& transfer, const Spot& spot) {
  const ModelPath& path = transfer.path;
  const NodeModel& node = transfer.world.node(spot.node);
  std::vector<std::string> nics;
  if (path.has("device")) {
    const std::string_view device = path.parameter("device");
    const bool far = spot.node == transfer.to.node;
    for (const std::string& one : devices_here(far ? turned_device(device) : std::string(device)))
      nics.push_back(nic_named(node.topology(), one));
    return nics;
  }
  nics = node.nics(spot.device, transfer.world.spec().rdma_only);
  const auto wanted = path.has("nics") ? path.integer("nics", 1, 16) : 1;
  nics.resize(std::min(nics.size(), static_cast<std::size_t>(wanted)));
  return nics;
}

Leg host_wire(const TimedTransfer& transfer) {
  const Spot near = host_of(transfer, transfer.from), far = host_of(transfer, transfer.to);
  Sides sides;
  sides.tcp = transfer.path.parameter("transports") == "network-tcp";
  return wire(transfer, near, far, rails_at(transfer, transfer.from).front(), rails_at(transfer, transfer.to).front(),
              sides);
}

Program ucx_shared_program(const TimedTransfer& transfer) {
  const std::vector<std::string_view> rails = rails_of(transfer.path.parameter("device"));
  const std::vector<Bytes> bytes = split_bytes(split_percents(transfer.path.whole(), rails.size()), transfer.bytes);
  transfer.path.hand_on("");
  Program program;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    if (i > 0 && bytes[i] == 0) continue;
    Path one = transfer.path.whole();
    one.parameters.erase("share");
    one.parameters["device"] = rails[i];
    Program part =
        sim::program({transfer.world, one, transfer.from, transfer.to, bytes[i], transfer.lane, transfer.slots});
    if (!part.parts.empty()) part = Program(part.parts.front());
    part.share = bytes[i];
    program.parts.push_back(std::move(part));
  }
  return program;
}

Program ucx_remote_program(const TimedTransfer& transfer) {
  const Sides sides = sides_of(transfer);
  const std::vector<std::string> out = rails_at(transfer, transfer.from), in = rails_at(transfer, transfer.to);
  Program program = rendezvous(transfer, sides, out, in);
  bool small = static_cast<double>(transfer.bytes) < transfer.cost("ucx.rndv_threshold");
  if (small) {
    Program other = eager(transfer, sides, out[0], in[0]);
    small = estimate(transfer, other) <= estimate(transfer, program);
    if (small) program = std::move(other);
  }
  const auto dress = [&](Program& part) {
    part.cpu = progress(transfer, transfer.from);
    part.issue = transfer.cost("ucx.issue") + (sides.from_gpu ? transfer.cost("ucx.gpu_send") : 0);
    part.finish = transfer.cost(transfer.to, "ucx.overhead");
  };
  dress(program);
  for (Program& part : program.parts) {
    dress(part);
    if (&part != &program.parts.front()) part.issue = 0;  // one message
  }
  return program;
}

}  // namespace waywiser::sim
