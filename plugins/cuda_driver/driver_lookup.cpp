// Functions by their names.
#include <dlfcn.h>

#include <array>
#include <string>
#include <string_view>

#include "remote_devices.hpp"

using namespace waywiser;

namespace {

// Functions whose parameters have changed in a version of CUDA, the newest first. All others are meant by their newest
// name, which is older than every program that looks for it so.
struct ChangedFunction {
  std::string_view name, suffix;
  int since;
};
constexpr std::array<ChangedFunction, 13> changed{{{"cuCtxCreate", "_v4", 12050},
                                                   {"cuCtxCreate", "_v3", 11040},
                                                   {"cuCtxCreate", "_v2", 0},
                                                   {"cuGetProcAddress", "_v2", 12000},
                                                   {"cuGetProcAddress", "", 0},
                                                   {"cuCtxGetDevice", "_v2", 13000},
                                                   {"cuCtxGetDevice", "", 0},
                                                   {"cuCtxSynchronize", "_v2", 13000},
                                                   {"cuCtxSynchronize", "", 0},
                                                   {"cuStreamGetCtx", "_v2", 12050},
                                                   {"cuStreamGetCtx", "", 0},
                                                   {"cuEventElapsedTime", "_v2", 12080},
                                                   {"cuEventElapsedTime", "", 0}}};

// In this library, of which another one of the same name may be loaded too.
void* address_of(const std::string& name) {
  static void* const self = [] {
    Dl_info here{};
    if (::dladdr(reinterpret_cast<void*>(&cuInit), &here) == 0) return static_cast<void*>(nullptr);
    return ::dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  return self == nullptr ? nullptr : ::dlsym(self, name.c_str());
}

void* look_up(const std::string& name, int version) {
  for (const auto& [function, suffix, since] : changed)
    if (function == name && version >= since) return address_of(name + std::string(suffix));
  void* const newer = name.starts_with("cu") ? address_of(name + "_v2") : nullptr;
  return newer != nullptr ? newer : address_of(name);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* result) {
  if (name == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = look_up(name, version);
  if (result == nullptr) return *function != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  *result = *function != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;  // as the driver does: the result says that there is none
}

CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}
}
#pragma GCC visibility pop
