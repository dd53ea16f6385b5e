#include "waywiser/sim/models.hpp"

// GPU memory that UCX does not see, between two machines: each end with a GPU copies through host memory beside it, and
// UCX carries host memory. For chunks of c bytes (the whole message but for variant=pipelined):
//   T(n) = ucx.issue + sum of legs + (n / c - 1) max(leg)
// A copy is an engine's: copy.issue, copy.finish and from a GPU copy.finish_d2h pass before the next leg begins. The
// wire is that of ucx between hosts, over RDMA or TCP, from ucx.rndv_threshold on with the round trip of a rendezvous
// for each chunk.

namespace waywiser::sim {
namespace {

std::string_view variant_of(const TimedTransfer& transfer) {
  return transfer.path.one_of("variant", {"pageable", "whole", "pipelined"});
}

Leg copied(const TimedTransfer& transfer, const Spot& from, const Spot& to) {
  const bool out = from.device.starts_with("gpu");
  Leg leg = engine_leg(transfer, from, to, Links::no_gpu_fabric);
  leg.latency += transfer.cost(from, "copy.issue") + transfer.cost(from, "copy.finish");
  if (out) leg.latency += transfer.cost(from, "copy.finish_d2h");
  if (variant_of(transfer) == "pageable") make_pageable(transfer, leg, out);
  return leg;
}

Spot beside(const TimedTransfer& transfer, const Spot& spot) {
  return {spot.node, transfer.world.node(spot.node).host_beside(spot.device)};
}

}  // namespace

Program ucx_staged_program(const TimedTransfer& transfer) {
  Program program;
  program.cpu = transfer.cpu();
  program.issue = transfer.cost("ucx.issue");
  program.finish = transfer.cost(transfer.to, "ucx.overhead");
  if (variant_of(transfer) == "pipelined") {
    program.chunk = transfer.path.bytes("chunk", 4096, Bytes{1} << 30);
    program.depth = static_cast<int>(transfer.path.integer("depth", 1, 64));
  }
  const Bytes each = program.chunk == 0 ? transfer.bytes : std::min(program.chunk, transfer.bytes);
  Leg wire = host_wire(transfer);
  if (static_cast<double>(each) >= transfer.cost("ucx.rndv_threshold"))
    wire.latency += 2 * wire.latency + transfer.cost(transfer.to, "ucx.rendezvous");
  if (transfer.from.device.starts_with("gpu"))
    program.legs.push_back(copied(transfer, transfer.from, beside(transfer, transfer.from)));
  program.legs.push_back(std::move(wire));
  if (transfer.to.device.starts_with("gpu"))
    program.legs.push_back(copied(transfer, beside(transfer, transfer.to), transfer.to));
  return program;
}

}  // namespace waywiser::sim
