#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver_types.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/offload/connect.hpp"
#include "waywiser/offload/remote_driver.hpp"

namespace waywiser {

class RemoteDevice;

}  // namespace waywiser

// What the handles of a program point to.
struct CUctx_st {
  waywiser::RemoteDevice* device = nullptr;
  unsigned flags = 0;
};
struct CUmod_st {
  waywiser::RemoteDevice* device;
  std::uint64_t code;
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions = {};
};
struct CUfunc_st {
  CUmodule module;
  std::string name;
  waywiser::RemoteKernel kernel;
};
struct CUstream_st {
  waywiser::RemoteDevice* device;
  std::uint64_t number;
  unsigned flags;
  int priority;
};
struct CUevent_st {
  waywiser::RemoteDevice* device;
  std::uint64_t number;
  bool recorded = false;
};

namespace waywiser {

// Ends a call of the driver API with a code.
struct DriverCode : std::exception {
  explicit DriverCode(CUresult what) : code(what) {}
  CUresult code;
};
[[noreturn]] inline void end_with(CUresult code) { throw DriverCode(code); }
// What a program hands over.
template <typename Value>
Value& given_place(Value* place) {
  if (place == nullptr) end_with(CUDA_ERROR_INVALID_VALUE);
  return *place;
}

// A GPU of the server: connected when it is used first.
class RemoteDevice {
 public:
  explicit RemoteDevice(RemoteGpuOptions options) : options_(std::move(options)) { primary_.device = this; }

  int number() const noexcept { return options_.gpu; }
  RemoteGpu& gpu();
  RemoteDriver driver() { return RemoteDriver(gpu()); }
  const GpuFacts& facts();
  CUcontext primary() noexcept { return &primary_; }
  // At the end of the process.
  void close() noexcept;

  // Memory of the GPU, by its address.
  struct Part {
    std::uint64_t array = 0;
    Bytes offset = 0;
    CUdeviceptr start = 0;  // of the allocation
    Bytes whole = 0;
  };
  CUdeviceptr allocate(Bytes bytes);
  void add(CUdeviceptr address, std::uint64_t array, Bytes bytes) { memory_[address] = {array, 0, address, bytes}; }
  void free(CUdeviceptr address);
  // Ends the call with INVALID_VALUE if these are not bytes of one allocation.
  Part part(CUdeviceptr address, Bytes bytes);
  std::optional<Part> find(CUdeviceptr address, Bytes bytes);
  Bytes used() const noexcept { return used_; }

  int primary_uses = 0;
  std::map<void*, PinnedMemory> host;  // of cuMemHostAlloc
  std::set<void*> registered;          // of cuMemHostRegister

 private:
  RemoteGpuOptions options_;
  std::optional<RemoteGpu> gpu_;
  std::optional<GpuFacts> facts_;
  CUctx_st primary_;
  std::map<CUdeviceptr, Part> memory_;
  Bytes used_ = 0;
  bool closed_ = false;
};

// All GPUs of the server that WAYWISER_REMOTE names, with the key of WAYWISER_REMOTE_KEY.
class RemoteDevices {
 public:
  static RemoteDevices& of_this_process();

  // Asks the server. Ends the call with NO_DEVICE without one.
  void init();
  bool initialized() const noexcept { return !devices_.empty(); }
  std::size_t count() const noexcept { return devices_.size(); }
  RemoteDevice& device(CUdevice number);
  // Of the calling thread's current context. Ends the call with INVALID_CONTEXT without one.
  RemoteDevice& current();
  std::mutex& mutex() noexcept { return mutex_; }
  void close() noexcept;

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<RemoteDevice>> devices_;
};

// The contexts of the calling thread, of which the last one is current.
std::vector<CUcontext>& context_stack();
// What follows on the device is in this stream.
void use_stream(RemoteDevice& device, CUstream stream);

CUresult code_of(const Error& error);
// One line on standard error, at most 20 of them.
void tell_driver_error(const char* call, const std::string& why) noexcept;

// The same function by the name of per-thread default streams: here every default stream is ordered with all others.
#define WAYWISER_PER_THREAD(name, suffix) \
  extern "C" [[gnu::visibility("default")]] decltype(name) name##suffix __attribute__((alias(#name)));

// False while this thread is in a call of the driver API already: UCX looks for GPUs when it is opened.
class EnteredDriver {
 public:
  EnteredDriver();
  ~EnteredDriver();
  EnteredDriver(const EnteredDriver&) = delete;
  EnteredDriver& operator=(const EnteredDriver&) = delete;
  explicit operator bool() const noexcept { return first_; }

 private:
  bool first_;
};

// Runs a call of the driver API: one at a time, and nothing is thrown.
template <typename Work>
CUresult forwarded(const char* call, Work work, bool needs_init = true) noexcept {
  const EnteredDriver entered;
  if (!entered) return CUDA_ERROR_NO_DEVICE;
  try {
    RemoteDevices& devices = RemoteDevices::of_this_process();
    const std::lock_guard lock(devices.mutex());
    if (needs_init && !devices.initialized()) return CUDA_ERROR_NOT_INITIALIZED;
    work(devices);
    return CUDA_SUCCESS;
  } catch (const DriverCode& ended) {
    return ended.code;
  } catch (const Error& error) {
    tell_driver_error(call, error.what());
    return code_of(error);
  } catch (const std::exception& error) {
    tell_driver_error(call, error.what());
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
}

}  // namespace waywiser
