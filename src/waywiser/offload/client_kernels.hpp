#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "waywiser/device/platform.hpp"
#include "waywiser/offload/kernel_code.hpp"

namespace waywiser {

// Code on a GPU.
class KernelModule {
 public:
  virtual ~KernelModule() = default;
  // Throws invalid_input for a name that is no kernel's; unavailable if the driver does not tell.
  virtual KernelParameters parameters(const std::string& kernel) = 0;
  // Enqueues a kernel; arguments of kind array are addresses here. Throws invalid_input, device.
  virtual void launch(Stream& stream, const std::string& kernel, const LaunchShape& shape,
                      std::span<const KernelArgument> arguments) = 0;
};

// What makes code of a client run on one GPU.
class KernelMaker {
 public:
  virtual ~KernelMaker() = default;
  // PTX of CUDA source. Throws invalid_input, whose lines after the first are the compiler's; unavailable without
  // NVRTC.
  virtual std::string compile(const std::string& source) = 0;
  // Of PTX or a cubin. Throws as compile.
  virtual std::unique_ptr<KernelModule> load(const std::string& code) = 0;
};

// Throws unavailable for a GPU that is not CUDA's.
std::unique_ptr<KernelMaker> open_kernel_maker(const Platform& platform, Place gpu);
// By CUDA's number of the GPU. Throws unavailable in a build without CUDA.
std::unique_ptr<KernelMaker> open_cuda_kernel_maker(int device);

// The kernels of one client. The same code is compiled once.
class ClientKernels {
 public:
  explicit ClientKernels(std::unique_ptr<KernelMaker> maker) : maker_(std::move(maker)) {}

  // `code`: CUDA source, PTX or a cubin, known as `number` from now on. Throws as KernelMaker, and invalid_input for
  // too much code.
  void add(std::uint64_t number, std::string code);
  // Checks everything before it enqueues the kernel. Throws invalid_input for a code, kernel, shape or arguments that
  // are none, and device.
  void launch(Stream& stream, std::uint64_t number, const std::string& kernel, const LaunchShape& shape,
              std::span<const KernelArgument> arguments);

 private:
  struct Made {
    std::unique_ptr<KernelModule> module;
    std::map<std::string, KernelParameters> kernels;  // of PTX
    bool is_ptx = false;
  };
  Made make(const std::string& code);

  std::unique_ptr<KernelMaker> maker_;
  std::unordered_map<std::string, std::shared_ptr<const Made>> made_;  // by the code
  std::map<std::uint64_t, std::shared_ptr<const Made>> numbered_;
  Bytes used_ = 0;
};

}  // namespace waywiser
