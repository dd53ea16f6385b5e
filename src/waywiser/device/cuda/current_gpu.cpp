#include "waywiser/device/current_gpu.hpp"

#include "waywiser/device/cuda/cuda_device.hpp"

namespace waywiser {

int cuda_ordinal_of(int gpu_index) {
  const auto devices = cuda_devices();
  const auto index = static_cast<std::size_t>(gpu_index);
  return index < devices.size() ? devices[index].ordinal : -1;
}

std::shared_ptr<void> make_gpu_current(int cuda_ordinal) { return std::make_shared<CurrentDevice>(cuda_ordinal); }

}  // namespace waywiser
