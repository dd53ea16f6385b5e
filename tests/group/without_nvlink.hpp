#pragma once

#include <cstring>
#include <memory>
#include <optional>

#include "tests/comm/different.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {

class WithoutNvlink : public Different {
 public:
  using Different::Different;
  std::optional<std::string> why_no_whole_lines(int gpu, int peer) const override {
    if (gpu == peer) return {};
    return "GPUs " + std::to_string(gpu) + " and " + std::to_string(peer) + " are not joined by NVLink";
  }
};

inline std::shared_ptr<Platform> without_nvlink(int) {
  VirtualMachine machine;
  machine.gpus = 3;
  return std::make_shared<WithoutNvlink>(machine);
}

}  // namespace waywiser
