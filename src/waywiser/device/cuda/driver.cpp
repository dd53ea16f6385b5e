#include "waywiser/device/cuda/driver.hpp"

#include <cuda_runtime_api.h>

#include <string>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr unsigned interface_version = 12000, newer_version = 12040;

// nullptr without it.
void* address_of(const char* name, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t result = cudaGetDriverEntryPointByVersion(name, &address, version, cudaEnableDefault, &found);
  if (result == cudaSuccess && found == cudaDriverEntryPointSuccess) return address;
  cudaGetLastError();
  return nullptr;
}

template <typename Function>
void find(Function*& function, const char* name) {
  void* const address = address_of(name, interface_version);
  if (address == nullptr) {
    throw Error(ErrorKind::unavailable,
                "the NVIDIA driver has no " + std::string(name) + ": CUDA 12 or later is needed");
  }
  function = reinterpret_cast<Function*>(address);
}

Driver find_all() {
  Driver driver{};
  find(driver.get_error_string, "cuGetErrorString");
  find(driver.device_get_attribute, "cuDeviceGetAttribute");
  find(driver.stream_write_value, "cuStreamWriteValue64");
  find(driver.stream_wait_value, "cuStreamWaitValue64");
  find(driver.mem_address_range, "cuMemGetAddressRange");
  find(driver.mem_granularity, "cuMemGetAllocationGranularity");
  find(driver.mem_create, "cuMemCreate");
  find(driver.mem_release, "cuMemRelease");
  find(driver.mem_reserve, "cuMemAddressReserve");
  find(driver.mem_address_free, "cuMemAddressFree");
  find(driver.mem_map, "cuMemMap");
  find(driver.mem_unmap, "cuMemUnmap");
  find(driver.mem_set_access, "cuMemSetAccess");
  find(driver.mem_export, "cuMemExportToShareableHandle");
  find(driver.mem_import, "cuMemImportFromShareableHandle");
  find(driver.module_load, "cuModuleLoadDataEx");
  find(driver.module_function, "cuModuleGetFunction");
  find(driver.module_unload, "cuModuleUnload");
  find(driver.launch_kernel, "cuLaunchKernel");
  find(driver.function_attribute, "cuFuncGetAttribute");
  find(driver.set_function_attribute, "cuFuncSetAttribute");
  find(driver.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  find(driver.module_variable, "cuModuleGetGlobal");
  driver.function_parameter =
      reinterpret_cast<decltype(driver.function_parameter)>(address_of("cuFuncGetParamInfo", newer_version));
  return driver;
}

}  // namespace

const Driver& driver() {
  static const Driver found = find_all();
  return found;
}

}  // namespace waywiser
