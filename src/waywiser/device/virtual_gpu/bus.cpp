#include "waywiser/device/virtual_gpu/bus.hpp"

#include <mutex>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

std::string gpu_text(int gpu) { return "GPU " + std::to_string(gpu); }

}  // namespace

Bus::Bus(VirtualMachine machine)
    : machine_(std::move(machine)),
      scheduler_(machine_.reorder_seed),
      peer_access_(static_cast<std::size_t>(machine_.gpus),
                   std::vector<bool>(static_cast<std::size_t>(machine_.gpus), false)),
      used_(static_cast<std::size_t>(machine_.gpus), 0),
      trapped_(static_cast<std::size_t>(machine_.gpus)) {}

void throw_trapped(Place gpu) {
  throw Error(ErrorKind::device, text(gpu) + ": a kernel has trapped, nothing runs there any more");
}

std::optional<std::string> Bus::why_no_peer_access(int gpu, int peer) const {
  for (const int each : {gpu, peer})
    if (each < 0 || each >= machine_.gpus) return "there is no " + gpu_text(each);
  if (gpu == peer || machine_.no_peer_access.empty()) return {};
  const auto row = static_cast<std::size_t>(gpu);
  const std::string& reason = machine_.no_peer_access.at(row).at(static_cast<std::size_t>(peer));
  if (reason.empty()) return {};
  return gpu_text(gpu) + " cannot map " + gpu_text(peer) + " (" + reason + ")";
}

void Bus::set_peer_access(int gpu, int peer, bool on) {
  if (const auto why = why_no_peer_access(gpu, peer)) throw Error(ErrorKind::unavailable, *why);
  const std::unique_lock lock(mutex_);
  peer_access_[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(peer)] = on;
}

void Bus::add(BusMemory memory) {
  const std::unique_lock lock(mutex_);
  memories_[memory.region.data] = std::move(memory);
}

void Bus::remove(const std::byte* data) {
  const std::unique_lock lock(mutex_);
  memories_.erase(data);
}

std::optional<Place> Bus::gpu_of(const std::byte* address) const {
  const std::shared_lock lock(mutex_);
  auto after = memories_.upper_bound(address);
  if (after == memories_.begin()) return {};
  const Region& region = std::prev(after)->second.region;
  if (!region.place.is_gpu() || static_cast<Bytes>(address - region.data) >= region.bytes) return {};
  return region.place;
}

void Bus::reserve(Place place, Bytes bytes) {
  const std::unique_lock lock(mutex_);
  Bytes& used = used_[static_cast<std::size_t>(place.index)];
  if (bytes > machine_.memory - used)
    throw Error(ErrorKind::device, text(place) + ": cannot allocate " + format_bytes(bytes) +
                                       " bytes: " + format_bytes(machine_.memory - used) + " of its memory are free");
  used += bytes;
}

void Bus::release(Place place, Bytes bytes) {
  const std::unique_lock lock(mutex_);
  used_[static_cast<std::size_t>(place.index)] -= bytes;
}

Bytes Bus::free_memory(int gpu) const {
  const std::shared_lock lock(mutex_);
  return machine_.memory - used_.at(static_cast<std::size_t>(gpu));
}

const BusMemory* Bus::find(ConstRegion region) const {
  auto after = memories_.upper_bound(region.data);
  if (after == memories_.begin()) return nullptr;
  const BusMemory& memory = std::prev(after)->second;
  const auto offset = static_cast<Bytes>(region.data - memory.region.data);
  const bool inside = offset <= memory.region.bytes && region.bytes <= memory.region.bytes - offset;
  return inside && memory.region.place == region.place ? &memory : nullptr;
}

void Bus::check_peer(int gpu, ConstRegion region, const BusMemory& memory, Access access) const {
  const int peer = region.place.index;
  if (access == Access::kernel && memory.only_for >= 0 && memory.only_for != gpu)
    throw Error(ErrorKind::device, "a kernel of " + gpu_text(gpu) + " cannot reach memory of " + gpu_text(peer) +
                                       " that was opened for " + gpu_text(memory.only_for));
  if (gpu == peer) return;
  if (const auto why = why_no_peer_access(gpu, peer)) throw Error(ErrorKind::device, *why);
  const bool on = peer_access_[static_cast<std::size_t>(gpu)][static_cast<std::size_t>(peer)];
  if (access == Access::kernel && !on && !memory.mapped_for_peers)
    throw Error(ErrorKind::device, "a kernel of " + gpu_text(gpu) + " cannot reach " + gpu_text(peer) +
                                       ": peer access is not switched on");
}

BusMemory Bus::allocation_of(ConstRegion region) const {
  const std::shared_lock lock(mutex_);
  const BusMemory* memory = find(region);
  if (memory == nullptr)
    throw Error(ErrorKind::device,
                text(region.place) + " has no memory of " + std::to_string(region.bytes) + " bytes at that address");
  return *memory;
}

Reached Bus::reach(int gpu, ConstRegion region, Access access) const {
  auto* data = const_cast<std::byte*>(region.data);
  if (region.bytes == 0) return {data, nullptr};
  const std::shared_lock lock(mutex_);
  const BusMemory* memory = find(region);
  if (region.place.is_gpu()) {
    if (memory == nullptr)
      throw Error(ErrorKind::device, text(region.place) + " has no memory of " + std::to_string(region.bytes) +
                                         " bytes at the address of a region");
    check_peer(gpu, region, *memory, access);
    return {memory->touchable->data() + (region.data - memory->region.data), memory->touchable};
  }
  if (access == Access::kernel && memory == nullptr)
    throw Error(ErrorKind::device, gpu_text(gpu) + " cannot reach pageable memory of " + text(region.place) +
                                       " from a kernel or a flag: allocate it pinned or shared");
  return {data, memory == nullptr ? nullptr : memory->host};
}

}  // namespace waywiser
