#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/host_memory.hpp"
#include "waywiser/device/host_stream.hpp"
#include "waywiser/device/numa.hpp"
#include "waywiser/device/peer_switch.hpp"
#include "waywiser/device/shared_file.hpp"
#include "waywiser/device/virtual_gpu/bus.hpp"
#include "waywiser/device/virtual_gpu/virtual_stream.hpp"

namespace waywiser {
namespace {

// GPU memory: pages of a file, seen by users at addresses that fault and by work at others.
struct VirtualMemoryOwner : MemoryOwner {
  std::shared_ptr<Bus> bus;
  Bytes reserved = 0;
  Descriptor file;
  Mapping untouchable;

  ~VirtualMemoryOwner() override {
    if (region.data != nullptr) bus->remove(region.data);
    if (reserved != 0) bus->release(region.place, reserved);
  }
};

struct VirtualHostMemoryOwner : MemoryOwner {
  std::shared_ptr<Bus> bus;
  std::shared_ptr<const Memory> memory;  // exported by the host's own functions

  ~VirtualHostMemoryOwner() override { bus->remove(region.data); }
};

std::unique_ptr<MemoryOwner> map_gpu(const std::shared_ptr<Bus>& bus, std::unique_ptr<VirtualMemoryOwner> block,
                                     Place place, Bytes bytes, Allocation allocation, std::optional<int> opened_for) {
  const std::string what = text(place);
  block->untouchable = Mapping::of_file(block->file, bytes, false, what);
  auto touchable = std::make_shared<const Mapping>(Mapping::of_file(block->file, bytes, true, what));
  block->region = {block->untouchable.data(), bytes, place};
  block->allocation = allocation;
  bus->add({.region = block->region,
            .mapped_for_peers = opened_for || allocation == Allocation::gpu_mapped,
            .touchable = std::move(touchable),
            .file = block->file.number(),
            .only_for = opened_for.value_or(-1)});
  return block;
}

std::unique_ptr<MemoryOwner> keep_host(const std::shared_ptr<Bus>& bus, std::unique_ptr<HostMemoryOwner> host) {
  auto block = std::make_unique<VirtualHostMemoryOwner>();
  block->bus = bus;
  block->region = host->region;
  block->allocation = host->allocation;
  block->memory = std::make_shared<const Memory>(std::move(host));
  if (block->allocation != Allocation::pageable) bus->add({.region = block->region, .host = block->memory});
  return block;
}

class VirtualPlatform : public Platform {
 public:
  explicit VirtualPlatform(const VirtualMachine& machine) : bus_(std::make_shared<Bus>(machine)) {}

  std::string_view backend() const override { return "virtual_gpu"; }
  int gpu_count() const override { return bus_->machine().gpus; }

  int multiprocessors(int /*gpu*/) const override { return bus_->machine().multiprocessors; }

  Bytes free_memory(Place place) const override {
    return place.is_gpu() ? bus_->free_memory(place.index) : free_memory_of_node(numa_nodes().front());
  }

  Bytes allocated_memory(int gpu) const override { return bus_->machine().memory - bus_->free_memory(gpu); }

  Place nearest_host(int gpu) const override {
    const std::vector<int>& hosts = bus_->machine().host_of_gpu;
    return host(hosts.empty() ? 0 : hosts.at(static_cast<std::size_t>(gpu)));
  }

  std::optional<std::string> why_no_peer_access(int gpu, int peer) const override {
    return bus_->why_no_peer_access(gpu, peer);
  }

  void set_peer_access(int gpu, int peer, bool on) override { bus_->set_peer_access(gpu, peer, on); }

  std::optional<std::string> why_not_allocatable(Place place, Allocation allocation) const override {
    const int count = place.is_gpu() ? gpu_count() : bus_->machine().host_nodes;
    if (place.index >= count) return "there is no " + text(place) + " on this virtual machine";
    if (!place.is_gpu()) return why_not_host_allocation(allocation);
    if (allocation == Allocation::gpu || allocation == Allocation::gpu_mapped) return {};
    return "a host allocation is not possible in GPU memory";
  }

  Memory allocate(Place place, Bytes bytes, Allocation allocation) override {
    check(place, allocation);
    if (!place.is_gpu()) return Memory(keep_host(bus_, allocate_host(place, bytes, allocation, false)));
    if (bus_->trapped(place.index)) throw_trapped(place);
    auto block = std::make_unique<VirtualMemoryOwner>();
    block->bus = bus_;
    block->region.place = place;
    bus_->reserve(place, round_up_to_pages(bytes));
    block->reserved = round_up_to_pages(bytes);
    block->file = create_shared_file(bytes, text(place));
    return Memory(map_gpu(bus_, std::move(block), place, bytes, allocation, {}));
  }

  std::optional<Place> gpu_of(const std::byte* address) const override { return bus_->gpu_of(address); }

  MemoryHandle export_memory(const Memory& memory) override;
  Memory open_memory_for(const MemoryHandle& handle, Place user) override;
  SharedRegion share(ConstRegion region) override;
  Memory open_shared(const SharedRegion& shared, Place user) override;

  std::unique_ptr<Stream> open_stream(Place place) override {
    check(place, place.is_gpu() ? Allocation::gpu : Allocation::pageable);
    if (place.is_gpu()) return std::make_unique<VirtualStream>(bus_, place);
    return std::make_unique<HostStream>(place);
  }

  std::unique_ptr<Event> create_event(Place place) override {
    check(place, place.is_gpu() ? Allocation::gpu : Allocation::pageable);
    if (place.is_gpu()) return std::make_unique<VirtualEvent>(bus_, place);
    return std::make_unique<HostEvent>();
  }

  std::string state() const override {
    return Json{{"backend", "virtual_gpu"},
                {"gpus", gpu_count()},
                {"note", "virtual GPUs are threads of the host: no time of theirs is a measurement of a GPU"}}
        .dump();
  }

 private:
  void check(Place place, Allocation allocation) const {
    if (const auto why = why_not_allocatable(place, allocation)) throw Error(ErrorKind::unavailable, *why);
  }

  std::shared_ptr<Bus> bus_;
};

MemoryHandle VirtualPlatform::export_memory(const Memory& memory) {
  if (const auto* host = dynamic_cast<const VirtualHostMemoryOwner*>(memory.block())) return export_host(*host->memory);
  const auto* block = dynamic_cast<const VirtualMemoryOwner*>(memory.block());
  if (block == nullptr) throw Error(ErrorKind::unavailable, "this memory is not one of the virtual_gpu back end");
  MemoryHandle handle;
  const bool mapped = block->allocation == Allocation::gpu_mapped;
  handle.kind = mapped ? HandleKind::gpu_descriptor : HandleKind::descriptor;
  handle.place = block->region.place;
  handle.bytes = block->region.bytes;
  handle.descriptor = block->file.duplicate();
  return handle;
}

// As CUDA maps memory of other processes: plain memory is mapped for the kernels of one GPU.
Memory VirtualPlatform::open_memory_for(const MemoryHandle& handle, Place user) {
  if (!handle.place.is_gpu()) return Memory(keep_host(bus_, open_host(handle)));
  check(handle.place, Allocation::gpu);
  const bool mapped = handle.kind == HandleKind::gpu_descriptor;
  if (!mapped && handle.kind != HandleKind::descriptor)
    throw Error(ErrorKind::device, text(handle.place) + ": the handle is not one of a virtual GPU's memory");
  check_shared_file(handle.descriptor, handle.bytes, text(handle.place));
  auto block = std::make_unique<VirtualMemoryOwner>();
  block->bus = bus_;
  block->file = handle.descriptor.duplicate();
  const int only_for = mapped ? -1 : (user.is_gpu() ? user : handle.place).index;
  return Memory(map_gpu(bus_, std::move(block), handle.place, handle.bytes, Allocation::gpu, only_for));
}

SharedRegion VirtualPlatform::share(ConstRegion region) {
  const BusMemory memory = bus_->allocation_of(region);
  SharedRegion shared;
  shared.address = reinterpret_cast<std::uintptr_t>(memory.region.data);
  shared.allocation_bytes = memory.region.bytes;
  shared.offset = static_cast<Bytes>(region.data - memory.region.data);
  shared.bytes = region.bytes;
  std::ranges::copy(identity(region.place.index), shared.gpu.begin());
  name_file(shared, memory.file);
  return shared;
}

Memory VirtualPlatform::open_shared(const SharedRegion& shared, Place user) {
  const Place place = find_gpu(shared.identity()).value_or(user);
  if (const auto why = why_no_peer_access(user.index, place.index)) throw Error(ErrorKind::unavailable, *why);
  MemoryHandle handle;
  handle.place = place;
  handle.bytes = shared.allocation_bytes;
  handle.descriptor = open_file(shared);
  return open_memory_for(handle, user);
}

void check_machine(const VirtualMachine& machine) {
  const auto gpus = static_cast<std::size_t>(machine.gpus);
  bool square = machine.gpus >= 0 && machine.gpus <= 4096 && machine.host_nodes >= 1;
  if (!machine.no_peer_access.empty()) square = square && machine.no_peer_access.size() == gpus;
  for (const auto& row : machine.no_peer_access) square = square && row.size() == gpus;
  if (!machine.host_of_gpu.empty()) square = square && machine.host_of_gpu.size() == gpus;
  for (const int node : machine.host_of_gpu) square = square && node >= 0 && node < machine.host_nodes;
  if (!square)
    throw Error(ErrorKind::invalid_input,
                "a virtual machine needs host nodes and a peer matrix that fit its number of "
                "GPUs (" +
                    std::to_string(machine.gpus) + ")");
}

}  // namespace

std::unique_ptr<Platform> open_virtual_platform(const VirtualMachine& machine) {
  check_machine(machine);
  if (!is_peer_access_off()) return std::make_unique<VirtualPlatform>(machine);
  VirtualMachine apart = machine;
  const auto gpus = static_cast<std::size_t>(machine.gpus);
  apart.no_peer_access.assign(gpus, std::vector<std::string>(gpus, peer_access_is_off));
  return std::make_unique<VirtualPlatform>(apart);
}

}  // namespace waywiser
