#pragma once

#include <string>
#include <vector>

namespace waywiser {

// A GPU as CUDA numbers it. gpu0, gpu1, ... are in the order of their PCI addresses, which is NVML's order too.
struct CudaDevice {
  int ordinal = 0;
  std::string name;
  std::string bus_id;  // "0000:3b:00.0"
  int numa_node = 0;   // the nearest one
  int multiprocessors = 0;
};

// Throws device. In PCI order.
std::vector<CudaDevice> cuda_devices();

// Makes a device current for the calling thread until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int ordinal);  // throws device
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  int before_ = 0;
  int now_ = 0;
};

}  // namespace waywiser
