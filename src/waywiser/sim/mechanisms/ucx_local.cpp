#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/sim/models.hpp"

// UCX between two processes of one machine.
//   posix, sysv: T(n) = ucx.overhead + n / ucx.shm_rate, copied into a shared segment and out again, overlapped; above
//     ucx.short_bytes, which a slot of its queue holds, + ucx.segment for a segment beside it.
//   cma: the same below ucx.rndv_threshold, then T(n) = ucx.overhead + ucx.rendezvous + n / ucx.cma_rate, one copy by
//     the kernel; at ucx.cma_cached while both buffers are in a CPU's second cache.
//   tcp: T(n) = tcp.issue + tcp.loopback + n / tcp.rate, the loopback device.
//   cuda_ipc: T(n) = ucx.ipc_small or ucx.ipc_large + n / ucx.ipc_rate, a copy engine's transfer that UCX starts and
//     polls.
//   cuda_copy: into host memory, across, and out again: two such copies.
//   tcp between GPUs: the same with the loopback device across; the one thread of each process copies into the kernel
//     and out of it, at tcp.rate.

namespace waywiser::sim {
namespace {

Program base(const TimedTransfer& transfer) {
  Program program;
  program.cpu = transfer.cpu();
  program.issue = transfer.cost("ucx.issue");
  program.finish = transfer.cost("ucx.overhead");
  return program;
}

Leg cpu_leg(const TimedTransfer& transfer, BytesPerSecond rate, Seconds hold) {
  Leg leg;
  leg.unit = transfer.unit(transfer.from, "ucx of " + transfer.cpu());
  leg.hold = hold;
  leg.cap = rate;
  if (!transfer.from.device.starts_with("gpu") && !transfer.to.device.starts_with("gpu"))
    leg.uses = transfer.world.within(transfer.from.node, transfer.from.device).uses;
  return leg;
}

Program between_hosts(const TimedTransfer& transfer, std::string_view transports) {
  Program program = base(transfer);
  const auto bytes = static_cast<double>(transfer.bytes);
  const bool large = bytes >= transfer.cost("ucx.rndv_threshold");
  if (transports == "tcp") {
    program.issue = transfer.cost("tcp.issue");
    program.finish = transfer.cost("tcp.loopback");
    program.legs.push_back(cpu_leg(transfer, transfer.cost("tcp.rate"), 0));
  } else if (transports == "cma" && large) {
    program.finish += transfer.cost("ucx.rendezvous");
    const bool cached = 2 * bytes * transfer.slots <= transfer.node().caches(transfer.from.device).second;
    program.legs.push_back(cpu_leg(transfer, transfer.cost(cached ? "ucx.cma_cached" : "ucx.cma_rate"), 0));
  } else {
    if (bytes > transfer.cost("ucx.short_bytes")) program.finish += transfer.cost("ucx.segment");
    program.legs.push_back(cpu_leg(transfer, transfer.cost("ucx.shm_rate"), 0));
  }
  return program;
}

}  // namespace

Program ucx_local_program(const TimedTransfer& transfer) {
  const std::string_view transports = transfer.path.parameter("transports");
  const bool on_gpus = transfer.from.device.starts_with("gpu") || transfer.to.device.starts_with("gpu");
  if (!on_gpus) return between_hosts(transfer, transports);
  const bool small = static_cast<double>(transfer.bytes) < transfer.cost("ucx.ipc_threshold");
  Program program = base(transfer);
  if (transports == "cuda_ipc") {
    Leg leg = engine_leg(transfer, transfer.from, transfer.to);
    leg.unit = transfer.unit(transfer.from, "ucx of " + transfer.cpu());
    leg.hold = transfer.cost("ucx.ipc_hold");
    leg.latency += transfer.cost(small ? "ucx.ipc_small" : "ucx.ipc_large");
    leg.cap = transfer.cost("ucx.ipc_rate");
    program.legs.push_back(std::move(leg));
    return program;
  }
  const Spot host{transfer.from.node, transfer.node().host_beside(transfer.from.device)};
  program.chunk = static_cast<Bytes>(transfer.cost("ucx.fragment"));
  program.depth = 4;
  if (transfer.from.device.starts_with("gpu")) {
    program.legs.push_back(engine_leg(transfer, transfer.from, host, Links::no_gpu_fabric));
    program.legs.back().latency += transfer.cost("ucx.copy");
  }
  if (transports == "tcp") {
    for (const Spot& end : {transfer.from, transfer.to}) {
      program.legs.push_back(cpu_leg(transfer, transfer.cost("tcp.rate"), transfer.cost("tcp.issue")));
      program.legs.back().unit = transfer.unit(end, "thread of tcp");
    }
    program.finish = transfer.cost("tcp.loopback");
  } else {
    program.legs.push_back(cpu_leg(transfer, transfer.cost("ucx.shm_rate"), 0));
  }
  if (transfer.to.device.starts_with("gpu")) {
    program.legs.push_back(engine_leg(transfer, host, transfer.to, Links::no_gpu_fabric));
    program.legs.back().latency += transfer.cost("ucx.copy");
  }
  return program;
}

}  // namespace waywiser::sim
