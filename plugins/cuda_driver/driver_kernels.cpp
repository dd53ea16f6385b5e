// Functions and their launches.
#include <algorithm>
#include <cstring>

#include "remote_devices.hpp"

using namespace waywiser;

namespace {

constexpr int threads_per_block = 0;  // of CUfunction_attribute

CUfunc_st& own_function(CUfunction function) {
  if (function == nullptr) end_with(CUDA_ERROR_INVALID_HANDLE);
  return *function;
}

// The parameters as the kernel reads them, from a pointer to each, or from all of them in `extra`.
std::string parameters_of(const RemoteKernel& kernel, void** each, void** extra) {
  std::string bytes;
  if (extra != nullptr) {
    const void* from = nullptr;
    std::size_t count = 0;
    for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
      if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) from = extra[1];
      if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) count = *static_cast<std::size_t*>(extra[1]);
    }
    if (from == nullptr && count != 0) end_with(CUDA_ERROR_INVALID_VALUE);
    if (count != 0) bytes.assign(static_cast<const char*>(from), count);
    return bytes;
  }
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const auto [offset, size] = kernel.parameters[i];
    bytes.resize(std::max<std::size_t>(bytes.size(), offset + size));
    std::memcpy(&bytes[offset], &given_place(static_cast<const char*>((&given_place(each))[i])), size);
  }
  return bytes;
}

void launch(CUfunction function, const LaunchShape& shape, CUstream stream, void** each, void** extra) {
  const CUfunc_st& meant = own_function(function);
  for (const auto& lengths : {shape.grid, shape.block})
    for (const std::uint32_t length : lengths)
      if (length == 0) end_with(CUDA_ERROR_INVALID_VALUE);
  RemoteDevice& device = *meant.module->device;
  const std::string parameters = parameters_of(meant.kernel, each, extra);
  use_stream(device, stream);
  device.driver().start(meant.kernel, shape, parameters);
}

int occupancy(CUfunction function, int threads, std::size_t shared) {
  const CUfunc_st& meant = own_function(function);
  if (threads < 1) end_with(CUDA_ERROR_INVALID_VALUE);
  return meant.module->device->driver().occupancy(meant.kernel, threads, shared);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x, unsigned y,
                        unsigned z, unsigned shared, CUstream stream, void** each, void** extra) {
  return forwarded("cuLaunchKernel", [&](RemoteDevices&) {
    launch(function, {{grid_x, grid_y, grid_z}, {x, y, z}, shared}, stream, each, extra);
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* asked, CUfunction function, void** each, void** extra) {
  return forwarded("cuLaunchKernelEx", [&](RemoteDevices&) {
    if (given_place(asked).numAttrs != 0) {
      tell_driver_error("cuLaunchKernelEx", "attributes of a launch are not forwarded");
      end_with(CUDA_ERROR_NOT_SUPPORTED);
    }
    launch(function,
           {{asked->gridDimX, asked->gridDimY, asked->gridDimZ},
            {asked->blockDimX, asked->blockDimY, asked->blockDimZ},
            asked->sharedMemBytes},
           asked->hStream, each, extra);
  });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return forwarded("cuFuncGetAttribute", [&](RemoteDevices&) {
    const std::vector<int>& known = own_function(function).kernel.attributes;
    if (attribute < 0 || static_cast<std::size_t>(attribute) >= known.size()) end_with(CUDA_ERROR_INVALID_VALUE);
    given_place(value) = known[static_cast<std::size_t>(attribute)];
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return forwarded("cuFuncSetAttribute", [&](RemoteDevices&) {
    CUfunc_st& meant = own_function(function);
    meant.module->device->driver().set_attribute(meant.kernel, static_cast<int>(attribute), value);
  });
}

// A hint: taken, and nothing is done with it.
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return forwarded("cuFuncSetCacheConfig", [&](RemoteDevices&) { own_function(function); });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return forwarded("cuFuncGetModule", [&](RemoteDevices&) { given_place(module) = own_function(function).module; });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return forwarded("cuFuncGetName", [&](RemoteDevices&) { given_place(name) = own_function(function).name.c_str(); });
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t place, std::size_t* offset, std::size_t* bytes) {
  return forwarded("cuFuncGetParamInfo", [&](RemoteDevices&) {
    const auto& known = own_function(function).kernel.parameters;
    if (place >= known.size()) end_with(CUDA_ERROR_INVALID_VALUE);
    given_place(offset) = known[place].first;
    if (bytes != nullptr) *bytes = known[place].second;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     std::size_t shared) {
  return forwarded("cuOccupancyMaxActiveBlocksPerMultiprocessor",
                   [&](RemoteDevices&) { given_place(blocks) = occupancy(function, threads, shared); });
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int threads,
                                                              std::size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}

// The number of threads, in whole warps, of which a multiprocessor runs most at once.
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                                          std::size_t shared, int limit) {
  return forwarded("cuOccupancyMaxPotentialBlockSize", [&](RemoteDevices&) {
    constexpr int warp = 32;
    CUfunc_st& meant = own_function(function);
    const int most = meant.kernel.attributes.at(threads_per_block);
    int best = 0, best_block = 0, best_blocks = 0;
    for (int threads = limit > 0 ? std::min(limit, most) : most; threads > 0; threads = (threads - 1) / warp * warp) {
      const int blocks = occupancy(function, threads, shared_of != nullptr ? shared_of(threads) : shared);
      if (blocks * threads <= best) continue;
      best = blocks * threads;
      best_block = threads;
      best_blocks = blocks;
    }
    constexpr std::size_t multiprocessors = 15;  // the place of attribute 16
    given_place(block) = best_block;
    given_place(grid) = best_blocks * meant.module->device->facts().attributes.at(multiprocessors);
  });
}
}
#pragma GCC visibility pop

WAYWISER_PER_THREAD(cuLaunchKernel, _ptsz)
WAYWISER_PER_THREAD(cuLaunchKernelEx, _ptsz)
