// Contexts: a GPU has one at the server, and all contexts of the program are that one.
#include <algorithm>

#include "remote_devices.hpp"

using namespace waywiser;

namespace {

CUcontext current_context() { return context_stack().empty() ? nullptr : context_stack().back(); }

void create(RemoteDevices& devices, CUcontext* context, unsigned flags, CUdevice device) {
  RemoteDevice& on = devices.device(device);
  on.gpu();  // fails now if there is no server
  given_place(context) = new CUctx_st{&on, flags};
  context_stack().push_back(*context);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return forwarded("cuCtxCreate", [&](RemoteDevices& devices) { create(devices, context, flags, device); });
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam* wanted, int count, unsigned flags, CUdevice device) {
  return forwarded("cuCtxCreate", [&](RemoteDevices& devices) {
    if (wanted != nullptr || count != 0) end_with(CUDA_ERROR_NOT_SUPPORTED);
    create(devices, context, flags, device);
  });
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* wanted, unsigned flags, CUdevice device) {
  return forwarded("cuCtxCreate", [&](RemoteDevices& devices) {
    if (wanted != nullptr) end_with(CUDA_ERROR_NOT_SUPPORTED);
    create(devices, context, flags, device);
  });
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  return forwarded("cuCtxDestroy", [&](RemoteDevices&) {
    if (context == nullptr || context == context->device->primary()) end_with(CUDA_ERROR_INVALID_CONTEXT);
    std::erase(context_stack(), context);
    delete context;
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  return forwarded("cuCtxPushCurrent", [&](RemoteDevices&) { context_stack().push_back(context); });
}

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  return forwarded("cuCtxPopCurrent", [&](RemoteDevices&) {
    if (context_stack().empty()) end_with(CUDA_ERROR_INVALID_CONTEXT);
    if (context != nullptr) *context = context_stack().back();
    context_stack().pop_back();
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return forwarded("cuCtxSetCurrent", [&](RemoteDevices&) {
    if (!context_stack().empty()) context_stack().pop_back();
    if (context != nullptr) context_stack().push_back(context);
  });
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  return forwarded("cuCtxGetCurrent", [&](RemoteDevices&) { given_place(context) = current_context(); });
}

CUresult cuCtxGetDevice(CUdevice* device) {
  return forwarded("cuCtxGetDevice", [&](RemoteDevices& devices) { given_place(device) = devices.current().number(); });
}

CUresult cuCtxGetFlags(unsigned* flags) {
  return forwarded("cuCtxGetFlags", [&](RemoteDevices& devices) {
    devices.current();
    given_place(flags) = current_context()->flags;
  });
}

CUresult cuCtxSetFlags(unsigned flags) {
  return forwarded("cuCtxSetFlags", [&](RemoteDevices& devices) {
    devices.current();
    current_context()->flags = flags;
  });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  return forwarded("cuCtxGetId", [&](RemoteDevices&) {
    const CUcontext meant = context == nullptr ? current_context() : context;
    if (meant == nullptr) end_with(CUDA_ERROR_INVALID_CONTEXT);
    given_place(id) = reinterpret_cast<std::uintptr_t>(meant);
  });
}

CUresult cuCtxGetApiVersion(CUcontext, unsigned* version) {
  return forwarded("cuCtxGetApiVersion", [&](RemoteDevices&) { given_place(version) = 3020; });
}

CUresult cuCtxSynchronize(void) {
  return forwarded("cuCtxSynchronize", [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.current();
    use_stream(device, nullptr);
    device.gpu().synchronize();
  });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return forwarded("cuCtxGetStreamPriorityRange", [&](RemoteDevices& devices) {
    devices.current();
    if (least != nullptr) *least = 0;
    if (greatest != nullptr) *greatest = 0;
  });
}

// Hints: taken, and nothing is done with them.
CUresult cuCtxSetCacheConfig(CUfunc_cache) {
  return forwarded("cuCtxSetCacheConfig", [&](RemoteDevices& devices) { devices.current(); });
}
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return forwarded("cuCtxGetCacheConfig", [&](RemoteDevices& devices) {
    devices.current();
    given_place(config) = static_cast<CUfunc_cache>(0);
  });
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig) {
  return forwarded("cuCtxSetSharedMemConfig", [&](RemoteDevices& devices) { devices.current(); });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice number) {
  return forwarded("cuDevicePrimaryCtxRetain", [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.device(number);
    device.gpu();
    given_place(context) = device.primary();
    ++device.primary_uses;
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice number) {
  return forwarded("cuDevicePrimaryCtxRelease", [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.device(number);
    if (device.primary_uses == 0) end_with(CUDA_ERROR_INVALID_CONTEXT);
    --device.primary_uses;
  });
}
CUresult cuDevicePrimaryCtxRelease(CUdevice number) { return cuDevicePrimaryCtxRelease_v2(number); }

CUresult cuDevicePrimaryCtxGetState(CUdevice number, unsigned* flags, int* active) {
  return forwarded("cuDevicePrimaryCtxGetState", [&](RemoteDevices& devices) {
    RemoteDevice& device = devices.device(number);
    given_place(flags) = device.primary()->flags;
    given_place(active) = device.primary_uses > 0;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice number, unsigned flags) {
  return forwarded("cuDevicePrimaryCtxSetFlags",
                   [&](RemoteDevices& devices) { devices.device(number).primary()->flags = flags; });
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice number, unsigned flags) {
  return cuDevicePrimaryCtxSetFlags_v2(number, flags);
}
}
#pragma GCC visibility pop
