#include "waywiser/measure/connections.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/kernels/pattern.hpp"

namespace waywiser {
namespace {

constexpr Bytes alignment = 64;  // a larger power of two would put all small slots into a few sets of the cache
constexpr Bytes smallest_buffer = 1 << 20;

Bytes needed(Bytes bytes, int slots) {
  return std::max(smallest_buffer, slot_stride(bytes) * static_cast<Bytes>(slots));
}

std::string pair_key(const Path& path, int number) { return pair_text(path) + " #" + std::to_string(number); }
std::string path_key(const Path& path, int number) { return pair_key(path, number) + " " + label(path); }

}  // namespace

Bytes slot_stride(Bytes bytes) { return std::max(alignment, (bytes + alignment - 1) / alignment * alignment); }

Bytes ConnectionStore::half_of_free(Place place) {
  const auto known = free_at_start_.find(place);
  if (known != free_at_start_.end()) return known->second / 2;
  return (free_at_start_[place] = platform_.free_memory(place)) / 2;
}

ConnectionStore::Buffers& ConnectionStore::buffers(const Path& path, int number) {
  return buffers_[pair_key(path, number)];
}

Memory ConnectionStore::allocate(const Path& path, Place place, Bytes bytes) {
  if (place.is_gpu()) return platform_.allocate(place, bytes, Allocation::gpu);
  const bool with_gpu = path.source.is_gpu() || path.destination.is_gpu();
  return platform_.allocate(place, bytes, with_gpu ? Allocation::pinned : Allocation::pageable);
}

// Whether another two buffers of this size leave half of the memory free.
bool ConnectionStore::fits(const Path& path, Bytes bytes) {
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
void ConnectionStore::release_all() {
  connections_.clear();
  for (auto& [key, entry] : buffers_) entry = {};
}

void ConnectionStore::grow(Buffers& buffers, const Path& path, Bytes bytes) {
  connections_.clear();
  buffers = {};
  buffers.source = allocate(path, path.source, bytes);
  buffers.destination = allocate(path, path.destination, bytes);
  buffers.source_stream = platform_.open_stream(path.source);
  buffers.destination_stream = platform_.open_stream(path.destination);
  buffers.bytes = bytes;
  buffers.seed = next_seed_++;
  fill_pattern(*buffers.source_stream, buffers.source.region(), buffers.seed);
  fill_pattern(*buffers.destination_stream, buffers.destination.region(), ~buffers.seed);  // touches every page
  buffers.source_stream->synchronize(Deadline::in(usual_timeout()));
  buffers.destination_stream->synchronize(Deadline::in(usual_timeout()));
}

void ConnectionStore::prepare(const Path& path, int number, Bytes bytes, int slots) {
  if (ready(path, number, bytes, slots)) return;
  if (!fits(path, needed(bytes, slots))) release_all();
  grow(buffers(path, number), path, needed(bytes, slots));
}

bool ConnectionStore::ready(const Path& path, int number, Bytes bytes, int slots) {
  return buffers(path, number).bytes >= needed(bytes, slots);
}

void ConnectionStore::open(PathConnection& connection, const Path& path) const {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  if (mechanism == nullptr) throw Error(ErrorKind::unavailable, path.mechanism + ": there is no such mechanism");
  connection.path = path;
  connection.stream = platform_.open_stream(mechanism->works_on(path));
  connection.transport = open_transport(path, {.platform = platform_, .repeats = true});
}

void ConnectionStore::cut(PathConnection& connection, Buffers& buffers, Bytes bytes, int slots) {
  connection.seed = buffers.seed;
  connection.next = &buffers.next;
  if (!connection.sources.empty() && connection.sources.front().bytes == bytes &&
      connection.sources.size() == static_cast<std::size_t>(slots))
    return;
  connection.sources.clear();
  connection.destinations.clear();
  for (int slot = 0; slot < slots; ++slot) {
    const Bytes offset = slot_stride(bytes) * static_cast<Bytes>(slot);
    connection.sources.push_back(ConstRegion(buffers.source.region()).slice(offset, bytes));
    connection.destinations.push_back(buffers.destination.region().slice(offset, bytes));
  }
}

PathConnection& ConnectionStore::connection(const Path& path, int number, Bytes bytes, int slots) {
  PathConnection& connection = connections_[path_key(path, number)];
  if (!connection.transport) {
    try {
      open(connection, path);
    } catch (...) {
      connections_.erase(path_key(path, number));
      throw;
    }
  }
  cut(connection, buffers(path, number), bytes, slots);
  return connection;
}

PathConnection ConnectionStore::open_fresh(const Path& path, Bytes bytes) {
  prepare(path, 0, bytes, 1);
  PathConnection connection;
  open(connection, path);
  cut(connection, buffers(path, 0), bytes, 1);
  return connection;
}

void ConnectionStore::fill_destination(const Path& path, int number, Region slot, std::uint64_t seed) {
  Stream& stream = *buffers(path, number).destination_stream;
  fill_pattern(stream, slot, seed);
  stream.synchronize(Deadline::in(usual_timeout()));
}

Bytes ConnectionStore::mismatches(const Path& path, int number, ConstRegion slot, std::uint64_t seed) {
  return count_mismatches(*buffers(path, number).destination_stream, slot, seed, Deadline::in(usual_timeout()));
}

}  // namespace waywiser
