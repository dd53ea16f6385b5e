#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/offload/kernel_code.hpp"

namespace waywiser {

// Where each parameter of a kernel lies, as offset and bytes, and its CUfunction_attributes, from 0.
struct KernelFacts {
  std::vector<std::pair<Bytes, Bytes>> parameters;
  std::vector<int> attributes;
};
// The name of a GPU, its bytes, its UUID in hexadecimal digits, the driver's version, and its CUdevice_attributes from
// 1, as JSON.
std::string facts_of_gpu(const Platform& platform, Place gpu);
std::string facts_of_cuda_gpu(int device);

// Code on a GPU.
class KernelModule {
 public:
  virtual ~KernelModule() = default;
  // Throws invalid_input for a name that is no kernel's; unavailable if the driver does not tell.
  virtual KernelParameters parameters(const std::string& kernel) = 0;
  // Enqueues a kernel; arguments of kind array are addresses here. Throws invalid_input, device.
  virtual void launch(Stream& stream, const std::string& kernel, const LaunchShape& shape,
                      std::span<const KernelArgument> arguments) = 0;
  // For programs of the CUDA driver API. Throws unavailable without a GPU of CUDA.
  virtual KernelFacts facts(const std::string& kernel);
  virtual void start(Stream& stream, const std::string& kernel, const LaunchShape& shape, std::string_view parameters);
  virtual void set_attribute(const std::string& kernel, int attribute, int value);
  // Blocks of so many threads and bytes of shared memory that one multiprocessor runs at once.
  virtual int occupancy(const std::string& kernel, int threads, Bytes shared);
  // A variable of the code.
  virtual Region variable(const std::string& name, Place gpu);
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
  // A kernel of a code, known as `kernel` from now on. Throws as launch.
  KernelFacts find(std::uint64_t kernel, std::uint64_t code, const std::string& name);
  // The module and the name of such a kernel, and the module of a code.
  std::pair<KernelModule*, std::string> named(std::uint64_t kernel) const;
  std::shared_ptr<KernelModule> module(std::uint64_t code) const;

 private:
  struct Made {
    std::shared_ptr<KernelModule> module;
    std::map<std::string, KernelParameters> kernels;  // of PTX
    bool is_ptx = false;
  };
  Made make(const std::string& code);
  std::shared_ptr<const Made> code_of(std::uint64_t code) const;

  std::unique_ptr<KernelMaker> maker_;
  std::unordered_map<std::string, std::shared_ptr<const Made>> made_;  // by the code
  std::map<std::uint64_t, std::shared_ptr<const Made>> numbered_;
  std::map<std::uint64_t, std::pair<std::shared_ptr<const Made>, std::string>> found_;
  Bytes used_ = 0;
};

}  // namespace waywiser
