#pragma once

#include <cuda.h>

#include <cstddef>

namespace waywiser {

// Driver calls without an equivalent in the runtime, found through the runtime: libcuda is never linked, so that the
// program starts on machines without a driver.
struct Driver {
  CUresult (*get_error_string)(CUresult, const char**);
  CUresult (*device_get_attribute)(int*, CUdevice_attribute, CUdevice);
  CUresult (*stream_write_value)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
  CUresult (*stream_wait_value)(CUstream, CUdeviceptr, cuuint64_t, unsigned);
  CUresult (*mem_address_range)(CUdeviceptr*, std::size_t*, CUdeviceptr);
  CUresult (*mem_granularity)(std::size_t*, const CUmemAllocationProp*, CUmemAllocationGranularity_flags);
  CUresult (*mem_create)(CUmemGenericAllocationHandle*, std::size_t, const CUmemAllocationProp*, unsigned long long);
  CUresult (*mem_release)(CUmemGenericAllocationHandle);
  CUresult (*mem_reserve)(CUdeviceptr*, std::size_t, std::size_t, CUdeviceptr, unsigned long long);
  CUresult (*mem_address_free)(CUdeviceptr, std::size_t);
  CUresult (*mem_map)(CUdeviceptr, std::size_t, std::size_t, CUmemGenericAllocationHandle, unsigned long long);
  CUresult (*mem_unmap)(CUdeviceptr, std::size_t);
  CUresult (*mem_set_access)(CUdeviceptr, std::size_t, const CUmemAccessDesc*, std::size_t);
  CUresult (*mem_export)(void*, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long);
  CUresult (*mem_import)(CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType);
  CUresult (*module_load)(CUmodule*, const void*, unsigned, CUjit_option*, void**);
  CUresult (*module_function)(CUfunction*, CUmodule, const char*);
  CUresult (*module_unload)(CUmodule);
  CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                            void**, void**);
  CUresult (*function_parameter)(CUfunction, std::size_t, std::size_t*, std::size_t*);  // null before CUDA 12.4
  CUresult (*function_attribute)(int*, CUfunction_attribute, CUfunction);
  CUresult (*set_function_attribute)(CUfunction, CUfunction_attribute, int);
  CUresult (*occupancy)(int*, CUfunction, int, std::size_t);
  CUresult (*module_variable)(CUdeviceptr*, std::size_t*, CUmodule, const char*);
};

// Looked up on first use. Throws unavailable if the driver lacks one.
const Driver& driver();

}  // namespace waywiser
