#include <algorithm>

#include "waywiser/sim/models.hpp"

// T(n) = host.copy_start + (threads > 1 and n >= host.thread_bytes: host.thread_start) + n / rate. Up to
// host.cache_bytes both ends are in a CPU's caches: host.cache_rate a thread. Beyond, threads host.copy_rate, but no
// more than half of the memory's bandwidth, which a copy reads and writes.

namespace waywiser::sim {

Program host_copy_program(const Transfer& transfer) {
  const bool past_caches = transfer.path.parameter("stores") == "nontemporal";
  auto threads = static_cast<double>(transfer.path.integer("threads", 1, 256));
  const auto bytes = static_cast<double>(transfer.bytes);
  if (bytes < transfer.cost("host.thread_bytes")) threads = 1;
  const bool cached = !past_caches && bytes <= transfer.cost("host.cache_bytes") * threads;
  Program program;
  program.cpu = transfer.cpu();
  program.issue = transfer.cost("host.copy_start") + (threads > 1 ? transfer.cost("host.thread_start") : 0) +
                  (past_caches ? transfer.cost("host.fence") : 0);
  Leg leg;
  leg.unit = transfer.unit(transfer.from, "threads of " + program.cpu);
  leg.cap = threads * transfer.cost(cached ? "host.cache_rate" : "host.copy_rate");
  if (!cached) {
    leg.uses = transfer.from.device == transfer.to.device
                   ? transfer.world.within(transfer.from.node, transfer.from.device).uses
                   : transfer.world.road(transfer.from.node, transfer.from.device, transfer.to.device).uses;
  }
  program.legs.push_back(std::move(leg));
  program.finish = transfer.path.processes == 2 ? transfer.cost("process.signal") : 0;
  return program;
}

}  // namespace waywiser::sim
