#include "waywiser/device/cuda/cuda_platform.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/device/cuda/check.hpp"
#include "waywiser/device/cuda/cuda_event.hpp"
#include "waywiser/device/cuda/cuda_stream.hpp"
#include "waywiser/device/cuda/driver.hpp"
#include "waywiser/device/cuda/gpu_state.hpp"
#include "waywiser/device/cuda/kernel_launch.hpp"
#include "waywiser/device/peer_switch.hpp"

namespace waywiser {
namespace {

// The same range, which counts in `total` while anybody holds it.
std::shared_ptr<CudaRange> counted(std::shared_ptr<CudaRange> range, Bytes bytes,
                                   const std::shared_ptr<std::atomic<Bytes>>& total) {
  CudaRange* const counts = range.get();
  *total += bytes;
  return {counts, [range = std::move(range), bytes, total](CudaRange*) mutable {
            range.reset();
            *total -= bytes;
          }};
}

bool supports(int ordinal, CUdevice_attribute attribute) {
  int value = 0;
  return driver().device_get_attribute(&value, attribute, ordinal) == CUDA_SUCCESS && value != 0;
}

std::string name_of(Allocation allocation) {
  constexpr const char* names[] = {"pageable", "pinned", "shared", "gpu", "gpu_mapped"};
  return names[static_cast<int>(allocation)];
}

}  // namespace

CudaPlatform::CudaPlatform()
    : devices_(cuda_devices()), host_(open_host_platform()), peer_access_off_(is_peer_access_off()) {
  for (std::size_t gpu = 0; gpu < devices_.size(); ++gpu) allocated_.push_back(std::make_shared<std::atomic<Bytes>>(0));
}

int CudaPlatform::ordinal(int gpu) const {
  if (gpu < 0 || gpu >= gpu_count())
    throw Error(ErrorKind::invalid_input,
                "there is no gpu" + std::to_string(gpu) + ": CUDA shows " + std::to_string(gpu_count()) + " GPUs");
  return devices_[static_cast<std::size_t>(gpu)].ordinal;
}

std::string CudaPlatform::identity(int gpu) const {
  ordinal(gpu);
  return devices_[static_cast<std::size_t>(gpu)].bus_id;
}

int CudaPlatform::multiprocessors(int gpu) const {
  ordinal(gpu);
  return devices_[static_cast<std::size_t>(gpu)].multiprocessors;
}

Bytes CudaPlatform::free_memory(Place place) const {
  if (!place.is_gpu()) return host_->free_memory(place);
  const CurrentDevice current(ordinal(place.index));
  std::size_t free = 0;
  std::size_t total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

Place CudaPlatform::nearest_host(int gpu) const {
  ordinal(gpu);
  return host(devices_[static_cast<std::size_t>(gpu)].numa_node);
}

std::optional<std::string> CudaPlatform::why_no_peer_access(int gpu, int peer) const {
  int possible = 0;
  const int own_ordinal = ordinal(gpu);
  const int peer_ordinal = ordinal(peer);
  if (own_ordinal == peer_ordinal) return {};
  const std::string pair = "GPU " + std::to_string(gpu) + " cannot map GPU " + std::to_string(peer);
  if (peer_access_off_) return pair + " (" + peer_access_is_off + ")";
  check_cuda(cudaDeviceCanAccessPeer(&possible, own_ordinal, peer_ordinal), "cudaDeviceCanAccessPeer");
  if (possible != 0) return {};
  const bool slice = devices_[static_cast<std::size_t>(gpu)].name.find("MIG") != std::string::npos ||
                     devices_[static_cast<std::size_t>(peer)].name.find("MIG") != std::string::npos;
  return pair + " (no peer access: " + (slice ? "a MIG slice has none" : "the driver allows none between them") + ")";
}

// GPUs have native atomics to each other over NVLink only.
std::optional<std::string> CudaPlatform::why_no_whole_lines(int gpu, int peer) const {
  const int own_ordinal = ordinal(gpu), peer_ordinal = ordinal(peer);
  if (own_ordinal == peer_ordinal) return {};
  int atomics = 0;
  check_cuda(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, own_ordinal, peer_ordinal),
             "cudaDeviceGetP2PAttribute");
  if (atomics != 0) return {};
  return "GPUs " + std::to_string(gpu) + " and " + std::to_string(peer) + " are not joined by NVLink";
}

void CudaPlatform::set_peer_access(int gpu, int peer, bool on) {
  if (const auto why = why_no_peer_access(gpu, peer)) throw Error(ErrorKind::unavailable, *why);
  if (gpu == peer) return;
  const std::scoped_lock lock(mutex_);
  const CurrentDevice current(ordinal(gpu));
  const cudaError_t result =
      on ? cudaDeviceEnablePeerAccess(ordinal(peer), 0) : cudaDeviceDisablePeerAccess(ordinal(peer));
  if (result == cudaErrorPeerAccessAlreadyEnabled || result == cudaErrorPeerAccessNotEnabled)
    cudaGetLastError();
  else
    check_cuda(result, "peer access of GPU " + std::to_string(gpu) + " to GPU " + std::to_string(peer));
}

std::vector<int> CudaPlatform::reachers(int gpu) const {
  std::vector<int> found{ordinal(gpu)};
  for (int other = 0; other < gpu_count(); ++other)
    if (other != gpu && !why_no_peer_access(other, gpu)) found.push_back(ordinal(other));
  return found;
}

std::optional<std::string> CudaPlatform::why_not_allocatable(Place place, Allocation allocation) const {
  const bool for_gpu = allocation == Allocation::gpu || allocation == Allocation::gpu_mapped;
  if (for_gpu != place.is_gpu()) return name_of(allocation) + " is not a kind of memory of " + text(place);
  if (!for_gpu) return host_->why_not_allocatable(place, allocation);
  if (place.index < 0 || place.index >= gpu_count())
    return "there is no " + text(place) + ": CUDA shows " + std::to_string(gpu_count()) + " GPUs";
  if (allocation == Allocation::gpu) return {};
  const int device = ordinal(place.index);
  if (!supports(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
    return "this GPU has no virtual memory management";
  if (!supports(device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
    return "this driver gives no file descriptors for GPU memory";
  return {};
}

Memory CudaPlatform::allocate(Place place, Bytes bytes, Allocation allocation) {
  if (const auto why = why_not_allocatable(place, allocation))
    throw Error(ErrorKind::unavailable, text(place) + ": " + *why);
  try {
    return place.is_gpu() ? allocate_gpu(place, bytes, allocation) : allocate_host(place, bytes, allocation);
  } catch (const Error& error) {
    throw Error(
        error.kind(),
        text(place) + ": " + format_bytes(bytes) + " bytes of " + name_of(allocation) + " memory: " + error.what(),
        error.where());
  }
}

Memory CudaPlatform::allocate_gpu(Place place, Bytes bytes, Allocation allocation) {
  const int device = ordinal(place.index);
  std::shared_ptr<CudaRange> range;
  if (allocation == Allocation::gpu)
    range = std::make_shared<PlainRange>(device, bytes);
  else
    range = std::make_shared<MappedRange>(device, bytes, reachers(place.index));
  return own(place, bytes, allocation,
             counted(std::move(range), bytes, allocated_[static_cast<std::size_t>(place.index)]));
}

Memory CudaPlatform::allocate_host(Place place, Bytes bytes, Allocation allocation) {
  if (allocation == Allocation::pageable) return host_->allocate(place, bytes, allocation);
  const CurrentDevice current(devices_.front().ordinal);
  return own(place, bytes, allocation, std::make_shared<RegisteredRange>(host_->allocate(place, bytes, allocation)));
}

std::optional<Place> CudaPlatform::gpu_of(const std::byte* address) const {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  if (attributes.type != cudaMemoryTypeDevice && attributes.type != cudaMemoryTypeManaged) return {};
  const auto found = std::ranges::find(devices_, attributes.device, &CudaDevice::ordinal);
  if (found == devices_.end()) return {};
  return gpu(static_cast<int>(found - devices_.begin()));
}

std::unique_ptr<Stream> CudaPlatform::open_stream(Place place) {
  if (!place.is_gpu()) return host_->open_stream(place);
  return std::make_unique<CudaStream>(place, ordinal(place.index));
}

std::unique_ptr<Stream> CudaPlatform::borrow_stream(Place gpu, std::uintptr_t native) {
  if (!gpu.is_gpu()) return Platform::borrow_stream(gpu, native);
  // The default stream of CUDA is called 0, but a stream without a name is one of a virtual GPU here.
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is what other libraries give away
  const cudaStream_t stream = native == 0 ? cudaStreamLegacy : reinterpret_cast<cudaStream_t>(native);
  return std::make_unique<CudaStream>(gpu, ordinal(gpu.index), stream);
}

std::unique_ptr<Event> CudaPlatform::create_event(Place place) {
  if (!place.is_gpu()) return host_->create_event(place);
  return std::make_unique<CudaEvent>(place, ordinal(place.index), cudaEventDisableTiming);
}

std::unique_ptr<Event> CudaPlatform::create_timed_event(Place place) {
  if (!place.is_gpu()) return host_->create_timed_event(place);
  return std::make_unique<CudaEvent>(place, ordinal(place.index), cudaEventDefault);
}

std::unique_ptr<LaunchCache> CudaPlatform::create_launch_cache(Place place) {
  if (!place.is_gpu()) return host_->create_launch_cache(place);
  return std::make_unique<LaunchGraph>();
}

std::string CudaPlatform::state() const {
  Json state = Json::parse(host_->state());
  state["backend"] = "cuda";
  state["cuda"] = cuda_state(devices_);
  return state.dump();
}

std::unique_ptr<Platform> open_cuda_platform() {
  if (const auto why = why_no_cuda()) throw Error(ErrorKind::unavailable, "no CUDA device: " + *why);
  return std::make_unique<CudaPlatform>();
}

}  // namespace waywiser
