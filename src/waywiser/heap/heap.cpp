#include "waywiser/heap/heap.hpp"

#include <cstring>

#include "waywiser/heap/device/messages.hpp"
#include "waywiser/heap/heap_state.hpp"

namespace waywiser {

Heap::Heap(Group& group, const std::string& name, Place place, Bytes bytes) {
  const GroupHold alone(group);
  state_ = std::make_shared<State>(group, name, place, bytes);
}
Heap::Heap(Heap&& other) noexcept = default;
Heap& Heap::operator=(Heap&& other) noexcept = default;
Heap::~Heap() = default;

const std::string& Heap::name() const noexcept { return state_->name; }

Region Heap::local() const noexcept { return {state_->own.region().data, state_->bytes, state_->place}; }

Region Heap::peer(int rank) const {
  state_->check_rank(rank);
  if (rank == state_->group.rank()) return local();
  const auto index = static_cast<std::size_t>(rank);
  if (!state_->why_proxied[index].empty())
    throw Error(ErrorKind::unavailable, "heap '" + name() + "': stores do not reach the memory of rank " +
                                            std::to_string(rank) + ": " + state_->why_proxied[index]);
  return state_->opened[index].region().slice(0, state_->bytes);
}

std::string Heap::why_proxied(int rank) const {
  state_->check_rank(rank);
  return state_->why_proxied[static_cast<std::size_t>(rank)];
}

HeapTicket Heap::share(ConstRegion own) const {
  if (!own.place.is_gpu() || !state_->place.is_gpu())
    throw Error(ErrorKind::unavailable,
                "heap '" + name() + "': only GPU memory can be shared where it is; host memory is allocated as a heap");
  const SharedRegion shared = state_->platform->share(own);
  HeapTicket ticket;
  static_assert(sizeof shared <= sizeof ticket);
  std::memcpy(ticket.data.data(), &shared, sizeof shared);
  return ticket;
}

Region Heap::open(const HeapTicket& ticket) {
  const auto alone = state_->alone();
  SharedRegion shared;
  std::memcpy(&shared, ticket.data.data(), sizeof shared);
  shared.gpu.back() = '\0';
  if (!state_->place.is_gpu() || shared.bytes == 0 || shared.offset > shared.allocation_bytes ||
      shared.bytes > shared.allocation_bytes - shared.offset)
    throw Error(ErrorKind::unavailable, "heap '" + name() + "': the ticket is not one of GPU memory");
  Memory memory = state_->open(shared);
  const Region region = memory.region().slice(shared.offset, shared.bytes);
  state_->tickets.push_back(std::move(memory));
  return region;
}

one_sided::HeapTerms Heap::terms(const Stream& stream) const { return state_->terms(&stream); }
one_sided::HeapTerms Heap::terms() const { return state_->terms(nullptr); }

Bytes Heap::inbox_bytes(Bytes most) const noexcept { return one_sided::inbox_bytes(state_->protocols, most); }
const std::string& Heap::why_no_lines() const noexcept { return state_->why_no_lines; }

void Heap::set_deadline(Seconds deadline) {
  const auto alone = state_->alone();
  if (!(deadline > 0) || deadline > 1e9)
    throw Error(ErrorKind::invalid_input, "heap '" + name() + "': a deadline is more than 0 and at most 1e9 seconds");
  state_->deadline = deadline;
}

void Heap::check() const {
  if (const auto fault = state_->fault()) throw Error(*fault);
  state_->look();
}

void Heap::synchronize(Stream& stream) const {
  const auto alone = state_->alone();
  state_->await(stream);
  check();
  if (state_->proxy) state_->proxy->complete();
}

}  // namespace waywiser
