// Start, versions, errors and devices.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "remote_devices.hpp"

using namespace waywiser;

namespace {

struct NamedCode {
  CUresult code;
  const char *name, *text;
};
#define WAYWISER_CODE(code, text) \
  NamedCode { code, #code, text }
constexpr std::array named_codes{WAYWISER_CODE(CUDA_SUCCESS, "no error"),
                                 WAYWISER_CODE(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
                                 WAYWISER_CODE(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
                                 WAYWISER_CODE(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
                                 WAYWISER_CODE(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
                                 WAYWISER_CODE(CUDA_ERROR_DEVICE_UNAVAILABLE, "the server of the remote GPU is gone"),
                                 WAYWISER_CODE(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
                                 WAYWISER_CODE(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
                                 WAYWISER_CODE(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
                                 WAYWISER_CODE(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
                                 WAYWISER_CODE(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
                                 WAYWISER_CODE(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
                                 WAYWISER_CODE(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
                                 WAYWISER_CODE(CUDA_ERROR_NOT_READY, "device not ready"),
                                 WAYWISER_CODE(CUDA_ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
                                 WAYWISER_CODE(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
                                 WAYWISER_CODE(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
                                 WAYWISER_CODE(CUDA_ERROR_UNKNOWN, "unknown error")};
#undef WAYWISER_CODE

CUresult text_of(CUresult code, const char** text, const char* NamedCode::* what) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* found = std::ranges::find(named_codes, code, &NamedCode::code);
  *text = found == named_codes.end() ? nullptr : found->*what;
  return found == named_codes.end() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// What a GPU can do that is not forwarded, from one number of its attributes to another: mapped host memory, unified
// addressing, managed memory, pageable access, stream memory operations, cooperative launches, host memory that is
// registered, virtual memory management, memory pools, clusters, and what CUDA 12.1 has added.
constexpr std::array<std::pair<int, int>, 10> not_forwarded_ranges{
    {{19, 19}, {41, 41}, {83, 83}, {88, 89}, {91, 96}, {98, 105}, {107, 107}, {110, 110}, {112, 129}, {132, 9999}}};

bool is_forwarded(int attribute) {
  return std::ranges::none_of(not_forwarded_ranges, [attribute](const auto& range) {
    return attribute >= range.first && attribute <= range.second;
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuInit(unsigned flags) {
  return forwarded(
      "cuInit",
      [&](RemoteDevices& devices) {
        if (flags != 0) end_with(CUDA_ERROR_INVALID_VALUE);
        devices.init();
      },
      false);
}

// Of the server's driver, which compiles the program's PTX. It may be asked before cuInit.
CUresult cuDriverGetVersion(int* version) {
  return forwarded(
      "cuDriverGetVersion",
      [&](RemoteDevices& devices) {
        given_place(version);
        devices.init();
        *version = devices.device(0).facts().version;
      },
      false);
}

CUresult cuGetErrorString(CUresult code, const char** text) { return text_of(code, text, &NamedCode::text); }
CUresult cuGetErrorName(CUresult code, const char** text) { return text_of(code, text, &NamedCode::name); }

CUresult cuDeviceGetCount(int* count) {
  return forwarded("cuDeviceGetCount",
                   [&](RemoteDevices& devices) { given_place(count) = static_cast<int>(devices.count()); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return forwarded("cuDeviceGet",
                   [&](RemoteDevices& devices) { given_place(device) = devices.device(ordinal).number(); });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  return forwarded("cuDeviceGetName", [&](RemoteDevices& devices) {
    if (length < 1) end_with(CUDA_ERROR_INVALID_VALUE);
    std::string text = devices.device(device).facts().name;
    text.resize(std::min(text.size(), static_cast<std::size_t>(length) - 1));
    std::memcpy(&given_place(name), text.c_str(), text.size() + 1);
  });
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return forwarded("cuDeviceGetUuid", [&](RemoteDevices& devices) {
    const std::string& digits = devices.device(device).facts().uuid;
    constexpr std::string_view hexadecimal = "0123456789abcdef";
    for (std::size_t i = 0; i < sizeof(CUuuid); ++i) {
      const auto digit = [&](std::size_t at) { return at < digits.size() ? hexadecimal.find(digits[at]) & 15 : 0; };
      given_place(uuid).bytes[i] = static_cast<char>(16 * digit(2 * i) + digit(2 * i + 1));
    }
  });
}
CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) { return cuDeviceGetUuid(uuid, device); }

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return forwarded("cuDeviceTotalMem",
                   [&](RemoteDevices& devices) { given_place(bytes) = devices.device(device).facts().bytes; });
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return forwarded("cuDeviceGetAttribute", [&](RemoteDevices& devices) {
    const std::vector<int>& known = devices.device(device).facts().attributes;
    const auto number = static_cast<std::size_t>(attribute);
    const bool is_there = number >= 1 && number <= known.size() && is_forwarded(static_cast<int>(attribute));
    given_place(value) = is_there ? known[number - 1] : 0;
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return forwarded("cuDeviceComputeCapability", [&](RemoteDevices& devices) {
    const std::vector<int>& known = devices.device(device).facts().attributes;
    given_place(major) = known.size() > 75 ? known[74] : 0;
    given_place(minor) = known.size() > 75 ? known[75] : 0;
  });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) {
  return forwarded("cuDeviceCanAccessPeer", [&](RemoteDevices&) { given_place(can) = 0; });
}

CUresult cuDeviceGetPCIBusId(char* text, int length, CUdevice device) {
  return forwarded("cuDeviceGetPCIBusId", [&](RemoteDevices& devices) {
    if (length < 13) end_with(CUDA_ERROR_INVALID_VALUE);
    std::snprintf(&given_place(text), static_cast<std::size_t>(length), "0000:%02x:00.0",
                  devices.device(device).number());
  });
}
}
#pragma GCC visibility pop
