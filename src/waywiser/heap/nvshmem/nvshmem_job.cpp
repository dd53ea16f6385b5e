#include "waywiser/heap/nvshmem/nvshmem_job.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/heap/heap_state.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

constexpr Bytes least_alignment = 256, granule = Bytes{512} << 20;

}  // namespace

Bytes NvshmemJob::in_granules(Bytes bytes) noexcept {
  const Bytes past = bytes % granule;
  return past == 0 || bytes > ~Bytes{0} - granule ? bytes : bytes - past + granule;
}

NvshmemJob::NvshmemJob(Group& group, Bytes bytes) : group_(group), bytes_(bytes), parts_(bytes) {
  for (int rank = 0; rank < size(); ++rank)
    if (same_machine(group_, rank)) ranks_of_machine_.push_back(rank);
}

void NvshmemJob::open(Place place) {
  if (heap_) {
    if (place != heap_->local().place)
      throw Error(ErrorKind::invalid_input, "the symmetric memory is on " + text(heap_->local().place) + ", and " +
                                                text(place) + " is the present device");
    return;
  }
  platform_ = place.is_gpu() ? group_.platform() : std::shared_ptr<Platform>(open_host_platform());
  heap_.emplace(group_, "nvshmem", place, bytes_);
  teams_.emplace_back(heap_->world());
  for (int i = 0; i < 2; ++i) teams_.emplace_back(heap_->split(ranks_of_machine_.front()));
}

const Heap& NvshmemJob::heap() const {
  if (!heap_)
    throw Error(ErrorKind::invalid_input, "there is no symmetric memory yet: nvshmem_malloc of all PEs makes it");
  return *heap_;
}

Platform& NvshmemJob::platform() const { return *platform_; }

Stream& NvshmemJob::own_stream() {
  if (!stream_) stream_ = platform().open_stream(heap().local().place);
  return *stream_;
}

void NvshmemJob::wait_for_own_stream() { heap().synchronize(own_stream()); }

NvshmemTerms NvshmemJob::terms() const {
  NvshmemTerms terms;
  const Place place = heap().local().place;
  terms.heap = place.is_gpu() ? heap().terms(*platform().open_stream(place)) : heap().terms();
  for (std::size_t handle = 0; handle < teams_.size(); ++handle)
    if (teams_[handle]) terms.teams[handle] = teams_[handle]->terms();
  return terms;
}

void NvshmemJob::check_equal(const char* call, Bytes a, Bytes b) const {
  const auto all = heap_gather(group_, std::array<Bytes, 2>{a, b});
  for (int rank = 1; rank < size(); ++rank) {
    const auto& [other_a, other_b] = all[static_cast<std::size_t>(rank)];
    if (other_a != all[0][0] || other_b != all[0][1])
      throw Error(ErrorKind::invalid_input, std::string(call) + ": PE " + std::to_string(rank) + " gives " +
                                                std::to_string(other_a) + " and " + std::to_string(other_b) +
                                                ", PE 0 " + std::to_string(all[0][0]) + " and " +
                                                std::to_string(all[0][1]));
  }
}

std::byte* NvshmemJob::allocate(Bytes bytes, Bytes alignment, bool zeros) {
  check_equal("allocation of symmetric memory (bytes, alignment)", bytes, alignment);
  if (bytes == 0) return nullptr;
  if (!std::has_single_bit(alignment))
    throw Error(ErrorKind::invalid_input, "an alignment is a power of two, not " + std::to_string(alignment));
  const auto offset = parts_.take(bytes, std::max(alignment, least_alignment));
  if (!offset) return nullptr;
  const Region part = heap().local().slice(*offset, bytes);
  if (zeros && part.place.is_gpu()) clear(own_stream(), part);
  if (zeros && !part.place.is_gpu()) std::memset(part.data, 0, part.bytes);
  group_.barrier();
  return part.data;
}

void NvshmemJob::release(const std::byte* symmetric) {
  const Bytes at = symmetric == nullptr ? bytes_ : offset(symmetric, 0);
  check_equal("release of symmetric memory (offset, 0)", at, 0);
  if (symmetric != nullptr && !parts_.give_back(at))
    throw Error(ErrorKind::invalid_input,
                "nothing is allocated at offset " + std::to_string(at) + " of the symmetric memory");
}

Bytes NvshmemJob::offset(const void* symmetric, Bytes bytes) const {
  const Region own = heap().local();
  const Bytes at = reinterpret_cast<std::uintptr_t>(symmetric) - reinterpret_cast<std::uintptr_t>(own.data);
  if (at > own.bytes || bytes > own.bytes - at)
    throw Error(ErrorKind::invalid_input, std::to_string(bytes) + " bytes are not in the symmetric memory");
  return at;
}

std::byte* NvshmemJob::pointer(const std::byte* symmetric, int rank) const {
  if (!heap_) return nullptr;
  const Region own = heap().local();
  const Bytes at = reinterpret_cast<std::uintptr_t>(symmetric) - reinterpret_cast<std::uintptr_t>(own.data);
  if (at >= own.bytes || rank < 0 || rank >= size() || !heap().why_proxied(rank).empty()) return nullptr;
  return heap().peer(rank).data + at;
}

Region NvshmemJob::region_of(const void* data, Bytes bytes) const {
  auto* start = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  const Region own = heap().local();
  const Bytes at = reinterpret_cast<std::uintptr_t>(start) - reinterpret_cast<std::uintptr_t>(own.data);
  return {start, bytes, at < own.bytes ? own.place : platform().gpu_of(start).value_or(host(0))};
}

void NvshmemJob::put(void* destination, const void* source, Bytes bytes, int rank) {
  heap().put(own_stream(), region_of(source, bytes), rank, offset(destination, bytes));
  wait_for_own_stream();
}

void NvshmemJob::get(void* destination, const void* source, Bytes bytes, int rank) {
  heap().get(own_stream(), region_of(destination, bytes), rank, offset(source, bytes));
  wait_for_own_stream();
}

}  // namespace waywiser
