#include <algorithm>

#include "waywiser/sim/models.hpp"

// T(n) = kernel.issue + kernel.hold + latency + n / min(blocks sm.block_rate, sm.share x rate of the path) +
// kernel.finish. A block keeps a fixed number of bytes in flight, so its rate is that over the latency of the path
// (Little's law); more blocks than multiprocessors add nothing. sm.share: loads and stores carry smaller packets than a
// copy engine.

namespace waywiser::sim {

Program sm_copy_program(const TimedTransfer& transfer) {
  const bool push = transfer.path.one_of("direction", {"push", "pull"}) == "push";
  const Spot& worker = push ? transfer.from : transfer.to;
  const auto blocks = static_cast<double>(transfer.path.integer("blocks", 1, 65535));
  Program program;
  program.cpu = transfer.cpu();
  program.issue = transfer.cost("kernel.issue");
  Leg leg;
  leg.unit = transfer.unit(worker, "sm");
  leg.hold = transfer.cost("kernel.hold");
  const TimedRoute route = transfer.from == transfer.to
                               ? transfer.world.within(transfer.from.node, transfer.from.device)
                               : transfer.world.route(transfer.from.node, transfer.from.device, transfer.to.device);
  leg.uses = route.uses;
  for (Use& use : leg.uses) use.weight /= transfer.cost("sm.share");
  leg.latency = route.latency;
  leg.cap = std::min(blocks, transfer.cost("sm.multiprocessors")) * transfer.cost("sm.block_rate");
  program.legs.push_back(std::move(leg));
  program.finish = transfer.cost("kernel.finish");
  return program;
}

}  // namespace waywiser::sim
