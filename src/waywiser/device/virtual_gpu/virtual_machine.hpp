#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// What a machine of virtual GPUs is like: a value, made by hand in tests or from a topology.
struct VirtualMachine {
  int gpus = 0;
  // no_peer_access[a][b]: empty when GPU a reaches GPU b, else the reason. Empty outer vector: all reach all.
  std::vector<std::vector<std::string>> no_peer_access = {};
  int host_nodes = 1;                 // host0, host1, ...: all in the memory of this machine
  std::vector<int> host_of_gpu = {};  // the closest host memory of each GPU; empty: host0
  Bytes memory = 1ull << 30;          // of each GPU
  int multiprocessors = 132;          // of each GPU
  // Faults, for tests.
  // Not 0: nothing runs until someone waits; then the work of all streams runs one item at a time, in an order that the
  // seed picks among those that the streams allow. No kernel may then wait for the host.
  std::uint64_t reorder_seed = 0;
  Seconds delay = 0;  // added to every enqueued item
  int dead_gpu = -1;  // work on this GPU never completes
};

// Correct results and order on host threads; promises no speed. Its memory faults when the host touches it directly.
[[gnu::visibility("default")]] std::unique_ptr<Platform> open_virtual_platform(const VirtualMachine& machine);

}  // namespace waywiser
