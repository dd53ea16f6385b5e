#include "waywiser/measure/lanes.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern.hpp"

namespace waywiser {
namespace {

constexpr Seconds longest_wait = 60;
constexpr Bytes alignment = 64;  // a larger power of two would put all small slots into a few sets of the cache
constexpr Bytes smallest_buffer = 1 << 20;

Bytes needed(Bytes bytes, int slots) {
  return std::max(smallest_buffer, lane_stride(bytes) * static_cast<Bytes>(slots));
}

std::string pair_key(const Path& path, int number) { return pair_text(path) + " #" + std::to_string(number); }
std::string path_key(const Path& path, int number) { return pair_key(path, number) + " " + label(path); }

}  // namespace

Bytes lane_stride(Bytes bytes) { return std::max(alignment, (bytes + alignment - 1) / alignment * alignment); }

Bytes LaneStore::half_of_free(Place place) {
  const auto known = free_at_start_.find(place);
  if (known != free_at_start_.end()) return known->second / 2;
  return (free_at_start_[place] = platform_.free_memory(place)) / 2;
}

LaneStore::Buffers& LaneStore::buffers(const Path& path, int number) { return buffers_[pair_key(path, number)]; }

Memory LaneStore::allocate(const Path& path, Place place, Bytes bytes) {
  if (place.is_gpu()) return platform_.allocate(place, bytes, Allocation::gpu);
  const bool with_gpu = path.source.is_gpu() || path.destination.is_gpu();
  return platform_.allocate(place, bytes, with_gpu ? Allocation::pinned : Allocation::pageable);
}

// Whether another two buffers of this size leave half of the memory free.
bool LaneStore::fits(const Path& path, Bytes bytes) {
  const auto used = [&](Place place) {
    Bytes sum = 0;
    for (const auto& [key, entry] : buffers_)
      for (const Memory* memory : {&entry.source, &entry.destination})
        if (*memory && memory->region().place == place) sum += memory->region().bytes;
    return sum;
  };
  const Bytes twice = path.source == path.destination ? 2 : 1;
  return used(path.source) + twice * bytes <= half_of_free(path.source) &&
         used(path.destination) + twice * bytes <= half_of_free(path.destination);
}

// Transports go before memory: a resident kernel or a registration may hold on to it.
void LaneStore::release_all() {
  lanes_.clear();
  for (auto& [key, entry] : buffers_) entry = {};
}

void LaneStore::grow(Buffers& buffers, const Path& path, Bytes bytes) {
  lanes_.clear();
  buffers = {};
  buffers.source = allocate(path, path.source, bytes);
  buffers.destination = allocate(path, path.destination, bytes);
  buffers.source_stream = platform_.open_stream(path.source);
  buffers.destination_stream = platform_.open_stream(path.destination);
  buffers.bytes = bytes;
  buffers.seed = next_seed_++;
  fill_pattern(*buffers.source_stream, buffers.source.region(), buffers.seed);
  fill_pattern(*buffers.destination_stream, buffers.destination.region(), ~buffers.seed);  // touches every page
  buffers.source_stream->synchronize(Deadline::in(longest_wait));
  buffers.destination_stream->synchronize(Deadline::in(longest_wait));
}

void LaneStore::prepare(const Path& path, int number, Bytes bytes, int slots) {
  if (ready(path, number, bytes, slots)) return;
  if (!fits(path, needed(bytes, slots))) release_all();
  grow(buffers(path, number), path, needed(bytes, slots));
}

bool LaneStore::ready(const Path& path, int number, Bytes bytes, int slots) {
  return buffers(path, number).bytes >= needed(bytes, slots);
}

void LaneStore::open(Lane& lane, const Path& path) const {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  if (mechanism == nullptr) throw Error(ErrorKind::unavailable, path.mechanism + ": there is no such mechanism");
  const TransportContext context{platform_};
  lane.path = path;
  lane.stream = platform_.open_stream(mechanism->works_on(path));
  lane.transport = open_transport(path, context);
}

void LaneStore::cut(Lane& lane, Buffers& buffers, Bytes bytes, int slots) {
  lane.seed = buffers.seed;
  lane.next = &buffers.next;
  if (!lane.sources.empty() && lane.sources.front().bytes == bytes &&
      lane.sources.size() == static_cast<std::size_t>(slots))
    return;
  lane.sources.clear();
  lane.destinations.clear();
  for (int slot = 0; slot < slots; ++slot) {
    const Bytes offset = lane_stride(bytes) * static_cast<Bytes>(slot);
    lane.sources.push_back(ConstRegion(buffers.source.region()).slice(offset, bytes));
    lane.destinations.push_back(buffers.destination.region().slice(offset, bytes));
  }
}

Lane& LaneStore::lane(const Path& path, int number, Bytes bytes, int slots) {
  Lane& lane = lanes_[path_key(path, number)];
  if (!lane.transport) {
    try {
      open(lane, path);
    } catch (...) {
      lanes_.erase(path_key(path, number));
      throw;
    }
  }
  cut(lane, buffers(path, number), bytes, slots);
  return lane;
}

Lane LaneStore::open_fresh(const Path& path, Bytes bytes) {
  prepare(path, 0, bytes, 1);
  Lane lane;
  open(lane, path);
  cut(lane, buffers(path, 0), bytes, 1);
  return lane;
}

void LaneStore::fill_destination(const Path& path, int number, Region slot, std::uint64_t seed) {
  Stream& stream = *buffers(path, number).destination_stream;
  fill_pattern(stream, slot, seed);
  stream.synchronize(Deadline::in(longest_wait));
}

Bytes LaneStore::mismatches(const Path& path, int number, ConstRegion slot, std::uint64_t seed) {
  return count_mismatches(*buffers(path, number).destination_stream, slot, seed, Deadline::in(longest_wait));
}

}  // namespace waywiser
