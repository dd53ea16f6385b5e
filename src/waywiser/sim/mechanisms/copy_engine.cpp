#include <algorithm>

#include "waywiser/sim/models.hpp"

// T(n) = copy.issue + copy.hold + latency of the path + n / rate + copy.finish (+ copy.finish_d2h from a GPU to a
// host). In a window the engine serves one copy after the other, so a copy takes max(copy.issue, copy.hold + n / rate).
// Start-up and rate as in Hockney, Parallel Computing 20 (1994) 389; each leg's rate is shared as flow_network.hpp
// says. With memory=pageable the host's memory is ordinary memory: make_pageable(). With direction=pull the
// destination's engine is the one that is busy.

namespace waywiser::sim {

void make_pageable(const TimedTransfer& transfer, Leg& leg, bool to_host) {
  double each_byte = 0;
  for (const Use& use : leg.uses) each_byte = std::max(each_byte, use.weight / transfer.world.capacity(use.link));
  const double by_cpu =
      to_host ? transfer.cost(transfer.from, "pageable.d2h_rate") : transfer.cost(transfer.to, "pageable.h2d_rate");
  leg.cap = 1 / (each_byte + 1 / by_cpu);
}

Leg engine_leg(const TimedTransfer& transfer, const Spot& from, const Spot& to, Links links) {
  const bool out = from.device.starts_with("gpu"), in = to.device.starts_with("gpu");
  Leg leg;
  leg.unit = transfer.unit(out ? from : to, out && in ? (from == to ? "local" : "out") : out ? "d2h" : "h2d");
  leg.hold = transfer.cost(from, from == to ? "copy.hold_local" : out && in ? "copy.hold_peer" : "copy.hold");
  const TimedRoute route = from == to ? transfer.world.within(from.node, from.device)
                                      : transfer.world.route(from.node, from.device, to.device, links);
  leg.uses = route.uses;
  leg.latency = route.latency;
  if (out && in && from.device != to.device && transfer.cost("copy.peer_rate") > 0)
    leg.cap = transfer.cost("copy.peer_rate");
  return leg;
}

Program copy_engine_program(const TimedTransfer& transfer) {
  const bool out = transfer.from.device.starts_with("gpu"), in = transfer.to.device.starts_with("gpu");
  Program program;
  program.cpu = transfer.cpu();
  const bool local = transfer.from == transfer.to;
  program.issue = transfer.cost(local ? "copy.issue_local" : out && in ? "copy.issue_peer" : "copy.issue");
  program.legs.push_back(engine_leg(transfer, transfer.from, transfer.to));
  if (out && in && transfer.path.has("direction") && transfer.path.one_of("direction", {"push", "pull"}) == "pull")
    program.legs.back().unit = transfer.unit(transfer.to, "in");
  if (out != in && transfer.path.has("memory") && transfer.path.one_of("memory", {"pinned", "pageable"}) == "pageable")
    make_pageable(transfer, program.legs.back(), out);
  program.finish = transfer.cost("copy.finish") + (out && !in ? transfer.cost("copy.finish_d2h") : 0);
  return program;
}

}  // namespace waywiser::sim
