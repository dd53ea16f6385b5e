#include "waywiser/device/cuda/cuda_device.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/numa.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string old_driver() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess || version == 0)
    return "no NVIDIA driver is loaded (libcuda.so.1 was not found, or there is no /dev/nvidia0)";
  return "the NVIDIA driver supports CUDA " + version_text(version) + ", this build needs " +
         version_text(CUDART_VERSION);
}

}  // namespace

std::optional<std::string> why_no_cuda() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  cudaGetLastError();
  if (result == cudaErrorInsufficientDriver) return old_driver();
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0))
    return "the NVIDIA driver shows no GPU (is CUDA_VISIBLE_DEVICES empty?)";
  if (result != cudaSuccess) return std::string("the NVIDIA driver answers: ") + cudaGetErrorString(result);
  return {};
}

std::vector<CudaDevice> cuda_devices() {
  int count = 0;
  check_cuda(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  std::vector<CudaDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    std::array<char, 32> bus_id{};
    check_cuda(cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), ordinal), "cudaDeviceGetPCIBusId");
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, ordinal), "cudaGetDeviceProperties");
    CudaDevice device{ordinal, properties.name, bus_id.data(), 0, properties.multiProcessorCount};
    std::ranges::transform(device.bus_id, device.bus_id.begin(),
                           [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    device.numa_node = nearest_numa_node(device.bus_id);
    devices.push_back(device);
  }
  std::ranges::stable_sort(devices, {}, &CudaDevice::bus_id);
  return devices;
}

CurrentDevice::CurrentDevice(int ordinal) : now_(ordinal) {
  check_cuda(cudaGetDevice(&before_), "cudaGetDevice");
  if (before_ != now_) check_cuda(cudaSetDevice(now_), "cudaSetDevice");
}

CurrentDevice::~CurrentDevice() {
  if (before_ != now_) cudaSetDevice(before_);
}

}  // namespace waywiser
