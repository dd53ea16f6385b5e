#include "waywiser/sim/models.hpp"

// bar_copy: the CPU itself stores into or loads from GPU memory through its PCIe window:
//   T(n) = bar.write_start + n / bar.write_rate,    T(n) = bar.read_start + n / bar.read_rate.
// Reads cannot be combined: each waits for an answer over PCIe.
// courier: a resident kernel serves copies through mapped memory: T(n) = courier.start + n / courier.rate.

namespace waywiser::sim {
namespace {

Program by_cpu(const TimedTransfer& transfer, Seconds start, BytesPerSecond rate, Seconds finish) {
  Program program;
  program.cpu = transfer.cpu();
  Leg leg;
  leg.hold = program.busy = start;
  leg.unit = transfer.unit(transfer.from, "small copies of " + program.cpu);
  const TimedRoute route = transfer.world.route(transfer.from.node, transfer.from.device, transfer.to.device);
  leg.uses = route.uses;
  leg.cap = rate;
  program.legs.push_back(std::move(leg));
  program.finish = finish;
  return program;
}

}  // namespace

Program bar_copy_program(const TimedTransfer& transfer) {
  const bool write = transfer.to.device.starts_with("gpu");
  return by_cpu(transfer, transfer.cost(write ? "bar.write_start" : "bar.read_start"),
                transfer.cost(write ? "bar.write_rate" : "bar.read_rate"), 0);
}

Program courier_program(const TimedTransfer& transfer) {
  return by_cpu(transfer, transfer.cost("courier.start"), transfer.cost("courier.rate"), 0);
}

}  // namespace waywiser::sim
