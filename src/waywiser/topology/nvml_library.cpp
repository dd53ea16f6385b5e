#include "waywiser/topology/nvml_library.hpp"

namespace waywiser {
namespace {

template <typename Function>
void take(const DynamicLibrary& library, Function*& function, const char* symbol) {
  function = library.find<Function>(symbol);
}

}  // namespace

NvmlFunctions nvml_functions(const DynamicLibrary& library) {
  NvmlFunctions nvml;
  take(library, nvml.init, "nvmlInit_v2");
  take(library, nvml.shutdown, "nvmlShutdown");
  take(library, nvml.error_string, "nvmlErrorString");
  take(library, nvml.driver_version, "nvmlSystemGetDriverVersion");
  take(library, nvml.cuda_version, "nvmlSystemGetCudaDriverVersion_v2");
  take(library, nvml.device_count, "nvmlDeviceGetCount_v2");
  take(library, nvml.device_by_index, "nvmlDeviceGetHandleByIndex_v2");
  take(library, nvml.device_name, "nvmlDeviceGetName");
  take(library, nvml.pci_info, "nvmlDeviceGetPciInfo_v3");
  take(library, nvml.memory_info, "nvmlDeviceGetMemoryInfo");
  take(library, nvml.memory_bus_width, "nvmlDeviceGetMemoryBusWidth");
  take(library, nvml.max_clock, "nvmlDeviceGetMaxClockInfo");
  take(library, nvml.compute_capability, "nvmlDeviceGetCudaComputeCapability");
  take(library, nvml.pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
  take(library, nvml.pcie_width, "nvmlDeviceGetMaxPcieLinkWidth");
  take(library, nvml.pcie_width_now, "nvmlDeviceGetCurrPcieLinkWidth");
  take(library, nvml.nvlink_state, "nvmlDeviceGetNvLinkState");
  take(library, nvml.nvlink_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  take(library, nvml.nvlink_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType");
  take(library, nvml.p2p_status, "nvmlDeviceGetP2PStatus");
  take(library, nvml.field_values, "nvmlDeviceGetFieldValues");
  take(library, nvml.mig_mode, "nvmlDeviceGetMigMode");
  return nvml;
}

}  // namespace waywiser
