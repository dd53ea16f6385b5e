#include "remote_devices.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace waywiser {
namespace {

constexpr int most_lines = 20;
constexpr Seconds closing_patience = 5;
constexpr Seconds endless = 1e7;
thread_local bool is_inside = false;

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

RemoteGpuOptions options_of_environment() {
  RemoteGpuOptions options;
  options.address = setting("WAYWISER_REMOTE");
  if (options.address.empty())
    throw Error(ErrorKind::invalid_input, "WAYWISER_REMOTE is not set: it names a server of GPUs, HOST:PORT");
  options.key = setting("WAYWISER_REMOTE_KEY");
  options.data_plain = setting("WAYWISER_REMOTE_DATA_PLAIN") == "1";
  return options;
}

}  // namespace

EnteredDriver::EnteredDriver() : first_(!is_inside) { is_inside = true; }
EnteredDriver::~EnteredDriver() {
  if (first_) is_inside = false;
}

void tell_driver_error(const char* call, const std::string& why) noexcept {
  static std::atomic<int> lines{0};
  if (lines++ < most_lines) std::fprintf(stderr, "waywiser: %s: %s\n", call, why.c_str());
}

CUresult code_of(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::invalid_input: return CUDA_ERROR_INVALID_VALUE;
    case ErrorKind::unavailable: return CUDA_ERROR_NOT_SUPPORTED;
    case ErrorKind::timeout: return CUDA_ERROR_LAUNCH_TIMEOUT;
    case ErrorKind::device: return CUDA_ERROR_LAUNCH_FAILED;
    case ErrorKind::io: return CUDA_ERROR_DEVICE_UNAVAILABLE;
    default: return CUDA_ERROR_UNKNOWN;
  }
}

std::vector<CUcontext>& context_stack() {
  thread_local std::vector<CUcontext> stack;
  return stack;
}

void use_stream(RemoteDevice& device, CUstream stream) {
  const auto number = reinterpret_cast<std::uintptr_t>(stream);  // 1 and 2: the default streams of CUDA
  if (number > 2 && stream->device != &device) end_with(CUDA_ERROR_INVALID_HANDLE);
  device.gpu().use_stream(number > 2 ? stream->number : 0);
}

RemoteGpu& RemoteDevice::gpu() {
  if (closed_) end_with(CUDA_ERROR_DEINITIALIZED);
  if (!gpu_) {
    gpu_.emplace(connect_remote_gpu(options_));
    driver().set_timeout(endless);  // programs set none: only a server that has gone ends a call
    // After the connection: what is registered last runs first, and the group waits for the server otherwise.
    std::atexit([] { RemoteDevices::of_this_process().close(); });
  }
  return *gpu_;
}

const GpuFacts& RemoteDevice::facts() {
  if (!facts_) facts_ = driver().facts();
  return *facts_;
}

void RemoteDevice::close() noexcept {
  closed_ = true;
  if (!gpu_) return;
  try {
    RemoteDriver(*gpu_).set_timeout(closing_patience);
  } catch (const Error&) {  // it is closed
  }
  gpu_->close();
  gpu_.reset();  // and its threads, which use OpenSSL: its own end comes next
}

CUdeviceptr RemoteDevice::allocate(Bytes bytes) {
  if (bytes == 0) end_with(CUDA_ERROR_INVALID_VALUE);
  if (bytes > gpu().limit() - std::min(gpu().limit(), used_)) end_with(CUDA_ERROR_OUT_OF_MEMORY);
  const std::uint64_t array = gpu().zeros({DataType::uint8, false, {bytes}});
  try {
    const CUdeviceptr address = driver().address(array);
    add(address, array, bytes);
    used_ += bytes;
    return address;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    tell_driver_error("allocation", error.what());
    end_with(CUDA_ERROR_OUT_OF_MEMORY);
  }
}

void RemoteDevice::free(CUdeviceptr address) {
  if (address == 0) return;
  const auto found = memory_.find(address);
  if (found == memory_.end()) end_with(CUDA_ERROR_INVALID_VALUE);
  gpu().free(found->second.array);
  used_ -= std::min(used_, found->second.whole);
  memory_.erase(found);
}

std::optional<RemoteDevice::Part> RemoteDevice::find(CUdeviceptr address, Bytes bytes) {
  auto found = memory_.upper_bound(address);
  if (found == memory_.begin()) return {};
  Part part = (--found)->second;
  part.offset = address - part.start;
  if (part.offset >= part.whole || bytes > part.whole - part.offset) return {};
  return part;
}

RemoteDevice::Part RemoteDevice::part(CUdeviceptr address, Bytes bytes) {
  const auto found = find(address, bytes);
  if (!found) end_with(CUDA_ERROR_INVALID_VALUE);
  return *found;
}

// Never destroyed: a program may call it until its end.
RemoteDevices& RemoteDevices::of_this_process() {
  static auto* devices = new RemoteDevices;
  return *devices;
}

void RemoteDevices::init() {
  if (initialized()) return;
  // UCX would write its hooks over the functions of this library, which it takes for the driver.
  if (setting("UCX_MODULES").empty()) ::setenv("UCX_MODULES", "^cuda", 1);
  try {
    RemoteGpuOptions options = options_of_environment();
    const int gpus = remote_gpus(options);
    for (options.gpu = 0; options.gpu < gpus; ++options.gpu)
      devices_.push_back(std::make_unique<RemoteDevice>(options));
  } catch (const Error& error) {
    tell_driver_error("cuInit", error.what());
    end_with(CUDA_ERROR_NO_DEVICE);
  }
  if (devices_.empty()) end_with(CUDA_ERROR_NO_DEVICE);
}

RemoteDevice& RemoteDevices::device(CUdevice number) {
  if (number < 0 || static_cast<std::size_t>(number) >= devices_.size()) end_with(CUDA_ERROR_INVALID_DEVICE);
  return *devices_[static_cast<std::size_t>(number)];
}

RemoteDevice& RemoteDevices::current() {
  if (context_stack().empty() || context_stack().back() == nullptr) end_with(CUDA_ERROR_INVALID_CONTEXT);
  return *context_stack().back()->device;
}

void RemoteDevices::close() noexcept {
  const EnteredDriver entered;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // another thread is in a call, and stays there
  for (const auto& device : devices_) device->close();
}

}  // namespace waywiser
