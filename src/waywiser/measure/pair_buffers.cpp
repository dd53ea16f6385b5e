#include "waywiser/measure/pair_buffers.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/pattern.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/path/network_families.hpp"
#include "waywiser/transport/memory_message.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {
namespace {

Allocation landing_allocation(const Path& path, Place place) {
  if (is_two_sided(path)) return place.is_gpu() ? Allocation::gpu : Allocation::pageable;
  if (!place.is_gpu()) return Allocation::shared;
  return path.has("handle") && path.parameter("handle") == "descriptor" ? Allocation::gpu_mapped : Allocation::gpu;
}

Allocation outgoing_allocation(const Path& path, Place place, Place other) {
  if (place.is_gpu()) return Allocation::gpu;
  const bool pageable = path.has("variant") && path.parameter("variant") == "pageable";
  return other.is_gpu() && !pageable ? Allocation::pinned : Allocation::pageable;
}

// A cudaIpc handle is one of a whole block of the allocator. Two parts of a block cannot both be opened where UCX opens
// one and this process the other.
Bytes alone_in_its_block(Place place, Bytes bytes) {
  constexpr Bytes block = Bytes{2} << 20;
  return place.is_gpu() ? (bytes + block - 1) / block * block : bytes;
}

// The GPU whose copies or kernels write the other process's memory. What goes through other memory on its way ends at
// the destination's own GPU.
Place user_of_remote(const Path& path) {
  const Mechanism* mechanism = find_mechanism(path.mechanism);
  if (mechanism == nullptr || mechanism->through_host || path.has("via")) return path.destination;
  const Place worker = mechanism->works_on(path);
  return worker.is_gpu() ? worker : path.destination;
}

}  // namespace

Path reversed(const Path& path) { return for_pair(path, path.destination, path.source); }

Path outgoing_path(const Path& path, Role role) {
  if (role == Role::initiator) return path;
  Path out = reversed(path);
  if (path.source.other_machine() == path.destination.other_machine()) return out;
  out.source = seen_from_other(out.source);
  out.destination = seen_from_other(out.destination);
  if (out.has("device")) out.parameters["device"] = turned_device(out.parameter("device"));
  return out;
}

std::string buffers_key(const Path& path) {
  const auto number = [](Allocation allocation) { return std::to_string(static_cast<int>(allocation)); };
  return pair_text(path) + " " + (is_two_sided(path) ? "private " : "shared ") + text(user_of_remote(path)) + " " +
         number(landing_allocation(path, path.source)) + number(landing_allocation(path, path.destination)) +
         number(outgoing_allocation(path, path.source, path.destination)) +
         number(outgoing_allocation(path, path.destination, path.source));
}

PairBuffers::PairBuffers(Platform& platform, const Path& path, Role role, Bytes capacity, Deadline deadline)
    : platform_(platform), capacity_(capacity), shared_(!is_two_sided(path)) {
  const Path out = outgoing_path(path, role);
  remote_place_ = out.destination;
  user_ = user_of_remote(out);
  const Bytes bytes = alone_in_its_block(out.source, capacity);
  outgoing_ = platform.allocate(out.source, bytes, outgoing_allocation(path, out.source, out.destination));
  landing_ = platform.allocate(out.source, bytes, landing_allocation(path, out.source));
  touch(deadline);
}

// Pages that nothing was written to are one page of zeros when they are read, and faults when they are written.
void PairBuffers::touch(Deadline deadline) {
  const std::unique_ptr<Stream> stream = platform_.open_stream(outgoing_.region().place);
  for (const Memory* memory : {&outgoing_, &landing_}) fill_pattern(*stream, memory->region(), 1);
  stream->synchronize(deadline);
}

void PairBuffers::share(PeerChannel& channel, Deadline deadline) {
  if (!shared_) return;
  const MemoryHandle mine = platform_.export_memory(landing_);
  std::vector<int> numbers;
  if (mine.descriptor.open()) numbers.push_back(mine.descriptor.number());
  channel.send({{"landing", to_json(mine)}}, deadline, numbers);
  auto [message, descriptors] = channel.receive(deadline);
  const MemoryHandle theirs =
      memory_handle_from_json(require(message, "landing", "message from the peer process"), descriptors);
  if (theirs.bytes < capacity_ || theirs.place != remote_place_)
    throw Error(ErrorKind::invalid_input, "the peer process shared another memory than was agreed");
  remote_ = platform_.open_memory_for(theirs, user_);
}

}  // namespace waywiser
