#pragma once

#include <string>

#include "waywiser/base/dynamic_library.hpp"

// The part of NVML's C interface that is used here, so that no NVIDIA header is needed.
namespace waywiser {

struct NvmlDeviceHandle;

struct NvmlPciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;
  unsigned pci_subsystem_id;
  char bus_id[32];
};

struct NvmlMemory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct NvmlFieldValue {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int value_type;  // 0 double, 1 unsigned int, 2 unsigned long, 3 unsigned long long
  int result;
  union {
    double number;
    unsigned whole;
    unsigned long long_whole;
    unsigned long long longest_whole;
  } value;
};

// A function that the library lacks is nullptr.
struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
  int (*device_by_index)(unsigned, NvmlDeviceHandle**) = nullptr;
  int (*device_name)(NvmlDeviceHandle*, char*, unsigned) = nullptr;
  int (*pci_info)(NvmlDeviceHandle*, NvmlPciInfo*) = nullptr;
  int (*memory_info)(NvmlDeviceHandle*, NvmlMemory*) = nullptr;
  int (*memory_bus_width)(NvmlDeviceHandle*, unsigned*) = nullptr;
  int (*max_clock)(NvmlDeviceHandle*, int, unsigned*) = nullptr;
  int (*compute_capability)(NvmlDeviceHandle*, int*, int*) = nullptr;
  int (*pcie_generation)(NvmlDeviceHandle*, unsigned*) = nullptr;
  int (*pcie_width)(NvmlDeviceHandle*, unsigned*) = nullptr;
  int (*pcie_width_now)(NvmlDeviceHandle*, unsigned*) = nullptr;
  int (*nvlink_state)(NvmlDeviceHandle*, unsigned, int*) = nullptr;
  int (*nvlink_remote_pci)(NvmlDeviceHandle*, unsigned, NvmlPciInfo*) = nullptr;
  int (*nvlink_remote_type)(NvmlDeviceHandle*, unsigned, int*) = nullptr;
  int (*p2p_status)(NvmlDeviceHandle*, NvmlDeviceHandle*, int, int*) = nullptr;
  int (*field_values)(NvmlDeviceHandle*, int, NvmlFieldValue*) = nullptr;
  int (*mig_mode)(NvmlDeviceHandle*, unsigned*, unsigned*) = nullptr;
};

NvmlFunctions nvml_functions(const DynamicLibrary& library);

}  // namespace waywiser
