#pragma once

#include <cstdint>
#include <functional>

#include "waywiser/kernels/block/waiter.hpp"

namespace waywiser {
class LaunchCache;
}

namespace waywiser::on_stream {

// Addresses as the GPU reaches them.
struct GateArguments {
  // In host memory: the last number that the stream has reached, and the last open gate.
  std::uint64_t* reached = nullptr;
  const std::uint64_t* open = nullptr;
  block::Notice* notice = nullptr;
  std::uint64_t number = 0;
  std::uint64_t deadline_ns = 0;
  bool waits = true;
};

// Tells the host that the stream has reached the gate, and waits until the host opens it. One thread.
template <typename Gpu>
WAYWISER_DEVICE inline void wait_at_gate(Gpu& gpu, const GateArguments& gate) {
  gpu.release(gate.reached, gate.number);
  if (!gate.waits) return;
  const block::Waiter<Gpu> waiter(gpu, gate.notice, gate.deadline_ns);
  block::Waiter<Gpu>::wait(
      gpu, [&] { return gpu.acquire(gate.open) >= gate.number ? 0u : 1u; },
      [&](unsigned peer, unsigned times, block::Seen seen) {
        return waiter.check(peer, times, seen, {0, gate.number}, block::no_description);
      });
}

// For a cudaStream_t; empty in a build without CUDA.
std::function<void(void*)> cuda_gate_launcher(const GateArguments& gate);

}  // namespace waywiser::on_stream
