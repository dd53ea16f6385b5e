#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "waywiser/base/crypto.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_device.hpp"
#include "waywiser/device/cuda/driver.hpp"
#include "waywiser/offload/client_kernels.hpp"
#include "waywiser/offload/nvrtc.hpp"

namespace waywiser {
namespace {

class CudaModule final : public KernelModule {
 public:
  CudaModule(int device, const std::string& code) : device_(device) {
    const CurrentDevice current(device_);
    std::string log(8192, '\0');
    std::array options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
    const CUresult result = driver().module_load(&module_, code.c_str(), options.size(), options.data(), values.data());
    if (result == CUDA_SUCCESS) return;
    log.resize(std::min(log.find('\0'), log.size()));
    throw Error(ErrorKind::invalid_input, "the driver does not take it (error " + std::to_string(result) + ")\n" + log);
  }
  CudaModule(const CudaModule&) = delete;
  CudaModule& operator=(const CudaModule&) = delete;
  ~CudaModule() override {
    try {
      const CurrentDevice current(device_);
      driver().module_unload(module_);
    } catch (const Error&) {  // the GPU has failed, and its context with it
    }
  }

  // The driver knows sizes only.
  KernelParameters parameters(const std::string& kernel) override {
    const CurrentDevice current(device_);
    const CUfunction function = find(kernel);
    if (driver().function_parameter == nullptr)
      throw Error(ErrorKind::unavailable, "a cubin needs a driver of CUDA 12.4 or later on the server: give it PTX");
    KernelParameters parameters;
    std::size_t offset = 0, size = 0;
    for (std::size_t i = 0; driver().function_parameter(function, i, &offset, &size) == CUDA_SUCCESS; ++i)
      parameters.push_back({size == 8 ? "b64" : size == 4 ? "b32" : "", false});
    return parameters;
  }

  void launch(Stream& stream, const std::string& kernel, const LaunchShape& shape,
              std::span<const KernelArgument> arguments) override {
    const CurrentDevice current(device_);
    const CUfunction function = find(kernel);
    // Little-endian: the first bytes of the bits are those of a shorter number. The driver only reads them.
    addresses_.clear();
    for (const KernelArgument& each : arguments) addresses_.push_back(const_cast<std::uint64_t*>(&each.bits));
    const auto& [grid, block, shared] = shape;
    check_driver(driver().launch_kernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                                        static_cast<CUstream>(stream.native()), addresses_.data(), nullptr),
                 "the kernel was not launched");
  }

  KernelFacts facts(const std::string& kernel) override {
    const CurrentDevice current(device_);
    const CUfunction function = find(kernel);
    if (driver().function_parameter == nullptr)
      throw Error(ErrorKind::unavailable, "the server needs a driver of CUDA 12.4 or later");
    KernelFacts told;
    std::size_t offset = 0, size = 0;
    for (std::size_t i = 0; driver().function_parameter(function, i, &offset, &size) == CUDA_SUCCESS; ++i)
      told.parameters.emplace_back(offset, size);
    for (int i = 0; i <= CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT; ++i) {
      int value = 0;
      check_driver(driver().function_attribute(&value, static_cast<CUfunction_attribute>(i), function),
                   "cuFuncGetAttribute");
      told.attributes.push_back(value);
    }
    return told;
  }

  void start(Stream& stream, const std::string& kernel, const LaunchShape& shape,
             std::string_view parameters) override {
    const CurrentDevice current(device_);
    std::string bytes(parameters);
    std::size_t count = bytes.size();
    std::array<void*, 5> extra{CU_LAUNCH_PARAM_BUFFER_POINTER, bytes.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &count,
                               CU_LAUNCH_PARAM_END};
    const auto& [grid, block, shared] = shape;
    check_driver(driver().launch_kernel(find(kernel), grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                                        static_cast<CUstream>(stream.native()), nullptr, extra.data()),
                 "the kernel was not launched");
  }

  void set_attribute(const std::string& kernel, int attribute, int value) override {
    const CurrentDevice current(device_);
    check_driver(driver().set_function_attribute(find(kernel), static_cast<CUfunction_attribute>(attribute), value),
                 "cuFuncSetAttribute");
  }

  int occupancy(const std::string& kernel, int threads, Bytes shared) override {
    const CurrentDevice current(device_);
    int blocks = 0;
    check_driver(driver().occupancy(&blocks, find(kernel), threads, shared),
                 "cuOccupancyMaxActiveBlocksPerMultiprocessor");
    return blocks;
  }

  Region variable(const std::string& name, Place gpu) override {
    const CurrentDevice current(device_);
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    if (driver().module_variable(&address, &bytes, module_, name.c_str()) != CUDA_SUCCESS)
      throw Error(ErrorKind::invalid_input, "the code has no variable of this name");
    return {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address)), bytes, gpu};
  }

 private:
  CUfunction find(const std::string& kernel) {
    if (const auto found = functions_.find(kernel); found != functions_.end()) return found->second;
    CUfunction function = nullptr;
    if (driver().module_function(&function, module_, kernel.c_str()) != CUDA_SUCCESS)
      throw Error(ErrorKind::invalid_input, "the code has no kernel of this name; a kernel is extern \"C\" __global__");
    return functions_.emplace(kernel, function).first->second;
  }

  const int device_;
  CUmodule module_ = nullptr;
  std::map<std::string, CUfunction> functions_;  // that were asked for
  std::vector<void*> addresses_;                 // of arguments, of one call
};

class CudaKernelMaker final : public KernelMaker {
 public:
  explicit CudaKernelMaker(int device) : device_(device) {}
  std::string compile(const std::string& source) override {
    if (!compiler_) compiler_.emplace();
    return compiler_->compile(source, capability());
  }
  std::unique_ptr<KernelModule> load(const std::string& code) override {
    return std::make_unique<CudaModule>(device_, code);
  }

 private:
  int capability() const {
    int major = 0, minor = 0;
    check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device_), "compute capability");
    check_cuda(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device_), "compute capability");
    return 10 * major + minor;
  }

  const int device_;
  std::optional<Nvrtc> compiler_;
};

}  // namespace

std::string facts_of_cuda_gpu(int device) {
  const CurrentDevice current(device);
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  int version = 0;
  check_cuda(cudaDriverGetVersion(&version), "cudaDriverGetVersion");
  std::vector<int> attributes;
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    if (driver().device_get_attribute(&value, static_cast<CUdevice_attribute>(i), device) != CUDA_SUCCESS) value = 0;
    attributes.push_back(value);
  }
  return Json{{"name", properties.name},
              {"bytes", properties.totalGlobalMem},
              {"uuid", hexadecimal(std::as_bytes(std::span(properties.uuid.bytes)))},
              {"version", version},
              {"attributes", attributes}}
      .dump();
}

std::unique_ptr<KernelMaker> open_cuda_kernel_maker(int device) { return std::make_unique<CudaKernelMaker>(device); }

}  // namespace waywiser
