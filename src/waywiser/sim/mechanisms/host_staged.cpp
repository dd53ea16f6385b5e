#include <utility>

#include "waywiser/sim/models.hpp"

// Two legs through host memory, for chunks of c bytes:
//   T(n) = staged.issue + issue per chunk + (n / c + 1) max(leg) + staged.finish      pipelined, n / c chunks
//   T(n) = staged.issue + n / rate1 + n / rate2 + staged.finish                       whole, pageable: one chunk
// A transfer begins when the one before it has arrived. A leg is a copy engine's. With ordinary memory the CPU issues
// then, and copies beside the engine, as make_pageable() says.

namespace waywiser::sim {
namespace {

// Between ordinary host memory and the staging buffer the CPU copies.
Leg cpu_leg(const TimedTransfer& transfer, const std::string& host) {
  Leg leg;
  leg.unit = transfer.unit(transfer.from, "cpu copy");
  leg.uses = transfer.world.within(transfer.from.node, host).uses;
  leg.cap = transfer.cost("host.copy_rate");
  return leg;
}

}  // namespace

Program host_staged_program(const TimedTransfer& transfer) {
  const std::string_view variant = transfer.path.one_of("variant", {"pageable", "whole", "pipelined"});
  const bool out = transfer.from.device.starts_with("gpu"), in = transfer.to.device.starts_with("gpu");
  const NodeModel& node = transfer.node();
  Program program;
  program.cpu = transfer.cpu();
  program.issue = transfer.cost("staged.issue");
  program.issue_chunk = transfer.cost("staged.issue_chunk");
  program.finish = transfer.cost("staged.finish");
  program.in_turn = true;
  if (variant == "pipelined") {
    program.chunk = transfer.path.bytes("chunk", 4096, Bytes{1} << 30);
    program.depth = static_cast<int>(transfer.path.integer("depth", 1, 64));
  }
  const Spot buffer{transfer.from.node, node.host_beside(transfer.from.device)};
  if (out) program.legs.push_back(engine_leg(transfer, transfer.from, buffer, Links::no_gpu_fabric));
  if (!out || !in) program.legs.push_back(cpu_leg(transfer, buffer.device));
  if (in) program.legs.push_back(engine_leg(transfer, buffer, transfer.to, Links::no_gpu_fabric));
  if (variant == "pageable") {
    program.busy = std::exchange(program.issue, 0) + transfer.cost("pageable.issue");
    program.legs.front().hold += program.busy;
    if (out) make_pageable(transfer, program.legs.front(), true);
    if (in) make_pageable(transfer, program.legs.back(), false);
  }
  return program;
}

}  // namespace waywiser::sim
