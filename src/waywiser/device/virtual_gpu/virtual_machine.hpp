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
  std::vector<std::vector<std::string>> no_peer_access;
  Bytes memory = 1ull << 30;  // of each GPU
  // Faults, for tests.
  std::uint64_t reorder_seed = 0;  // not 0: work of different streams runs in a random, repeatable interleaving
  Seconds delay = 0;               // added to every enqueued item
  int dead_gpu = -1;               // work on this GPU never completes
};

// Correct results and order on host threads; promises no speed. Its memory faults when the host touches it directly.
std::unique_ptr<Platform> open_virtual_platform(const VirtualMachine& machine);

}  // namespace waywiser
