#include "waywiser/heap/heap.hpp"

#include <cstring>

#include "waywiser/heap/device/messages.hpp"
#include "waywiser/heap/heap_state.hpp"

namespace waywiser {

Heap::State& Heap::held() const {
  if (!state_) throw Error(ErrorKind::invalid_input, "this Heap was moved from: its memory is in another one");
  return *state_;
}

Heap::Heap(Group& group, const std::string& name, Place place, Bytes bytes) {
  const GroupHold alone(group);
  state_ = std::make_shared<State>(group, name, place, bytes);
}
Heap::Heap(Heap&& other) noexcept = default;
Heap& Heap::operator=(Heap&& other) noexcept = default;
Heap::~Heap() = default;

const std::string& Heap::name() const { return held().name; }

Region Heap::local() const { return {held().own.region().data, held().bytes, held().place}; }

Region Heap::peer(int rank) const {
  held().check_rank(rank);
  if (rank == held().group.rank()) return local();
  const auto index = static_cast<std::size_t>(rank);
  if (!held().why_proxied[index].empty())
    throw Error(ErrorKind::unavailable, "heap '" + name() + "': stores do not reach the memory of rank " +
                                            std::to_string(rank) + ": " + held().why_proxied[index]);
  return held().opened[index].region().slice(0, held().bytes);
}

std::string Heap::why_proxied(int rank) const {
  held().check_rank(rank);
  return held().why_proxied[static_cast<std::size_t>(rank)];
}

HeapTicket Heap::share(ConstRegion own) const {
  if (!own.place.is_gpu() || !held().place.is_gpu())
    throw Error(ErrorKind::unavailable,
                "heap '" + name() + "': only GPU memory can be shared where it is; host memory is allocated as a heap");
  const SharedRegion shared = held().platform->share(own);
  HeapTicket ticket;
  static_assert(sizeof shared <= sizeof ticket);
  std::memcpy(ticket.data.data(), &shared, sizeof shared);
  return ticket;
}

Region Heap::open(const HeapTicket& ticket) {
  const auto alone = held().alone();
  SharedRegion shared;
  std::memcpy(&shared, ticket.data.data(), sizeof shared);
  shared.gpu.back() = '\0';
  if (!held().place.is_gpu() || shared.bytes == 0 || shared.offset > shared.allocation_bytes ||
      shared.bytes > shared.allocation_bytes - shared.offset)
    throw Error(ErrorKind::unavailable, "heap '" + name() + "': the ticket is not one of GPU memory");
  Memory memory = held().open(shared);
  const Region region = memory.region().slice(shared.offset, shared.bytes);
  held().tickets.push_back(std::move(memory));
  return region;
}

one_sided::HeapTerms Heap::terms(const Stream& stream) const { return held().terms(&stream); }
one_sided::HeapTerms Heap::terms() const { return held().terms(nullptr); }

Bytes Heap::inbox_bytes(Bytes most) const { return one_sided::inbox_bytes(held().protocols, most); }
const std::string& Heap::why_no_lines() const { return held().why_no_lines; }

void Heap::set_deadline(Seconds deadline) {
  const auto alone = held().alone();
  if (!(deadline > 0) || deadline > 1e9)
    throw Error(ErrorKind::invalid_input, "heap '" + name() + "': a deadline is more than 0 and at most 1e9 seconds");
  held().deadline = deadline;
}

void Heap::check() const {
  if (const auto fault = held().fault()) throw Error(*fault);
  held().look();
}

void Heap::synchronize(Stream& stream) const {
  const auto alone = held().alone();
  held().await(stream);
  check();
  if (held().proxy) held().proxy->complete();
}

}  // namespace waywiser
