#pragma once

#include "waywiser/heap/device/reached_heap.hpp"

namespace waywiser::one_sided {

// Accesses to ranks that stores do not reach: the host carries them, and answers. Apart from the code of direct
// accesses, which are frequent.
template <typename Gpu>
class ProxiedAccess : public ReachedHeap<Gpu> {
 public:
  using ReachedHeap<Gpu>::ReachedHeap;
  using ReachedHeap<Gpu>::gpu;
  using ReachedHeap<Gpu>::terms;

  // Elements `apart` and `source_apart` bytes from one to the next, in pieces; the word's operation comes with the
  // last.
  template <Scope scope>
  WAYWISER_DEVICE void put(const ProxyRequest& whole, const std::byte* source, std::uint64_t source_apart) const {
    ProxyRequest request = whole;
    const std::uint64_t all = request.count, at_once = proxy_piece / request.element;
    const WordOp op = request.op;
    std::uint64_t sent = 0;
    do {
      request.count = all - sent < at_once ? all - sent : at_once;
      request.op = sent + request.count == all ? op : WordOp::none;
      const auto fill = [&](std::uint64_t ticket) {
        move<scope>(terms().ring->piece(ticket), request.element, source + sent * source_apart, source_apart, request);
      };
      if constexpr (scope == Scope::thread) {
        carry(request, fill, [](std::uint64_t) {});
      } else {
        const std::uint64_t ticket = take_ticket<scope>(request);
        fill(ticket);
        gpu().join(scope);
        if (gpu().index_in(scope) == 0) post(terms().ring->slot(ticket), request);
      }
      sent += request.count;
      request.offset += request.count * request.apart;
    } while (sent < all);
    gpu().join(scope);
  }
  template <Scope scope>
  WAYWISER_DEVICE void get(const ProxyRequest& request, std::byte* destination, std::uint64_t destination_apart) const {
    get_pieces<scope>(request, [&](const std::byte* piece, std::uint64_t first, const ProxyRequest& part) {
      move<scope>(destination + first * destination_apart, destination_apart, piece, request.element, part);
    });
  }
  // use(piece, first, part) by all threads of the scope, for each piece that has come: `part.count` elements from the
  // element `first` on.
  template <Scope scope, typename Use>
  WAYWISER_DEVICE void get_pieces(const ProxyRequest& whole, Use use) const {
    ProxyRequest request = whole;
    const std::uint64_t all = request.count, at_once = proxy_piece / request.element;
    request.move = ProxyMove::get;
    request.answered = 1;
    for (std::uint64_t taken = 0; taken < all; taken += request.count) {
      request.count = all - taken < at_once ? all - taken : at_once;
      const auto use_piece = [&](std::uint64_t ticket) { use(terms().ring->piece(ticket), taken, request); };
      if constexpr (scope == Scope::thread) {
        carry(request, [](std::uint64_t) {}, use_piece);
      } else {
        const std::uint64_t ticket = ask<scope>(request);
        use_piece(ticket);
        end<scope>(ticket);
      }
      request.offset += request.count * request.apart;
    }
    gpu().join(scope);
  }
  // One piece, when it has come: its ticket, for all threads of the scope.
  template <Scope scope>
  WAYWISER_DEVICE std::uint64_t ask(const ProxyRequest& request) const {
    const std::uint64_t ticket = take_ticket<scope>(request);
    ProxySlot& slot = terms().ring->slot(ticket);
    if (gpu().index_in(scope) == 0) {
      post(slot, request);
      check(this->wait_for_host([&] { return gpu().acquire(&slot.done) == ticket + 1; }), request);
    }
    gpu().join(scope);
    return ticket;
  }
  // All threads of the scope have used it.
  template <Scope scope>
  WAYWISER_DEVICE void end(std::uint64_t ticket) const {
    gpu().join(scope);
    if (gpu().index_in(scope) == 0) give_back(terms().ring->slot(ticket));
  }
  // An operation on the word at an offset, by one thread; the second one returns the word before it. Not apart from the
  // caller: in a function the compiler takes more registers for it.
  WAYWISER_DEVICE void change_word(std::uint64_t offset, std::uint64_t value, WordOp op, WordType type,
                                   int rank) const {
    carry(word_request(offset, value, 0, op, type, rank), [](std::uint64_t) {}, [](std::uint64_t) {});
  }
  WAYWISER_DEVICE std::uint64_t ask_word(std::uint64_t offset, std::uint64_t value, std::uint64_t expected, WordOp op,
                                         WordType type, int rank) const {
    ProxyRequest request = word_request(offset, value, expected, op, type, rank);
    request.answered = 1;
    std::uint64_t result = 0;
    carry(
        request, [](std::uint64_t) {},
        [&](std::uint64_t ticket) { result = gpu().read(&terms().ring->slot(ticket).result); });
    return result;
  }
  // For bytes of a rank, one after the other. Stops the kernel unless they lie in the heap.
  WAYWISER_DEVICE ProxyRequest request_for(const void* there, std::uint64_t count, unsigned element, int rank) const {
    ProxyRequest request;
    request.rank = rank;
    request.offset = far_offset(there, count, element, rank);
    request.count = count * element;
    return request;
  }
  WAYWISER_DEVICE std::uint64_t far_offset(const void* there, std::uint64_t count, unsigned element, int rank) const {
    if (!this->has(this->offset_of(there), count, element))
      stop_here(gpu(), terms().notice, fault_of(FaultReason::outside, rank), this->offset_of(there), count * element);
    return this->offset_of(there);
  }
  // Until all that this rank's kernels have asked for before is complete.
  WAYWISER_DEVICE void complete_all() const {
    const std::uint64_t asked = gpu().read(terms().tickets);
    const std::uint64_t* completed = &terms().ring->completed;
    if (this->wait_for_host([&] { return gpu().acquire(completed) >= asked; })) return;
    check(false, terms().ring->slot(gpu().read(completed)).request);
  }

 private:
  WAYWISER_DEVICE static ProxyRequest word_request(std::uint64_t offset, std::uint64_t value, std::uint64_t expected,
                                                   WordOp op, WordType type, int rank) {
    ProxyRequest request;
    request.rank = rank;
    request.word = offset;
    request.op = op;
    request.type = type;
    request.value = value;
    request.expected = expected;
    return request;
  }
  WAYWISER_DEVICE void check(bool in_time, const ProxyRequest& request) const {
    if (!in_time)
      this->stop(this->why_ended(), request.rank, request.count == 0 ? request.word : request.offset,
                 request.count == 0 ? 8 : request.bytes());
  }
  // All threads of the scope get it when its slot is free.
  template <Scope scope>
  WAYWISER_DEVICE std::uint64_t take_ticket(const ProxyRequest& request) const {
    std::uint64_t ticket = 0;
    gpu().join(scope);
    if (gpu().index_in(scope) == 0) {
      ticket = gpu().next_of(terms().tickets);
      const std::uint64_t* free_for = &terms().ring->slot(ticket).free_for;
      check(this->wait_for_host([&] { return gpu().acquire(free_for) == ticket; }), request);
    }
    return gpu().of_first(scope, ticket);
  }
  // One access by one thread, in one wait: fill(ticket) when its slot is free, take(ticket) when it has been answered.
  // Lanes of a warp that wait may go on together only, when the last one can. So none may have a slot, which others
  // wait for, and need to go on to give it back.
  template <typename Fill, typename Take>
  WAYWISER_DEVICE void carry(const ProxyRequest& request, Fill fill, Take take) const {
    const std::uint64_t ticket = gpu().next_of(terms().tickets);
    ProxySlot& slot = terms().ring->slot(ticket);
    bool posted = false;
    check(this->wait_for_host([&] {
      if (!posted) {
        if (gpu().acquire(&slot.free_for) != ticket) return false;
        fill(ticket);
        post(slot, request);
        posted = true;
        if (request.answered == 0) return true;
      }
      if (gpu().acquire(&slot.done) != ticket + 1) return false;
      take(ticket);
      give_back(slot);
      return true;
    }),
          request);
  }
  // The slot is free for the ticket of the caller. Field by field: of the whole a compiler makes stores of bytes.
  WAYWISER_DEVICE void post(ProxySlot& slot, const ProxyRequest& from) const {
    ProxyRequest& to = slot.request;
    gpu().write(&to.rank, from.rank);
    gpu().write(&to.move, from.move);
    gpu().write(&to.offset, from.offset);
    gpu().write(&to.count, from.count);
    gpu().write(&to.element, from.element);
    gpu().write(&to.apart, from.apart);
    gpu().write(&to.word, from.word);
    gpu().write(&to.value, from.value);
    gpu().write(&to.expected, from.expected);
    gpu().write(&to.op, from.op);
    gpu().write(&to.type, from.type);
    gpu().write(&to.answered, from.answered);
    gpu().write(&to.after_all, from.after_all);
    gpu().release(&slot.asked, gpu().read(&slot.free_for) + 1);
  }
  WAYWISER_DEVICE void give_back(ProxySlot& slot) const {
    gpu().release(&slot.free_for, gpu().read(&slot.free_for) + proxy_slots);
  }
  template <Scope scope>
  WAYWISER_DEVICE void move(std::byte* to, std::uint64_t to_apart, const std::byte* from, std::uint64_t from_apart,
                            const ProxyRequest& request) const {
    if (to_apart == request.element && from_apart == request.element)
      return gpu().take_apart(scope, to, from, request.bytes());
    for (std::uint64_t i = gpu().index_in(scope); i < request.count; i += gpu().count_of(scope))
      gpu().take_apart(Scope::thread, to + i * to_apart, from + i * from_apart, request.element);
  }
};

template <typename T>
WAYWISER_DEVICE std::uint64_t word_bits(T value) {
  if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(std::uint32_t, value);
  else
    return __builtin_bit_cast(std::uint64_t, value);
}
template <typename T>
WAYWISER_DEVICE T word_of_bits(std::uint64_t bits) {
  if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(T, static_cast<std::uint32_t>(bits));
  else
    return __builtin_bit_cast(T, bits);
}

// Calls for ranks that have no straight way, apart: they stop the kernel for what is wrong, else the proxy carries
// them. By few arguments and by values, so that what a caller has stays in its registers.

// Elements of so many bytes, one after the other.
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void put_far(HandedHeap<Gpu> heap, void* destination, const std::byte* source,
                                            std::uint64_t count, unsigned element, int rank) {
  const ProxiedAccess<Gpu> far(heap.block(), heap.terms());
  const ProxyRequest request = far.request_for(destination, count, element, rank);
  if (count != 0) far.template put<scope>(request, source, 1);
}
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void put_signal_far(HandedHeap<Gpu> heap, void* destination, const std::byte* source,
                                                   std::uint64_t count, unsigned element, std::uint64_t* signal,
                                                   std::uint64_t value, SignalOp op, int rank) {
  const ProxiedAccess<Gpu> far(heap.block(), heap.terms());
  ProxyRequest request = far.request_for(destination, count, element, rank);
  request.word = far.checked_offset(signal, 1, rank);
  request.op = op == SignalOp::set ? WordOp::set : WordOp::add;
  request.value = value;
  request.after_all = 1;
  far.template put<scope>(request, source, 1);
}
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void get_far(HandedHeap<Gpu> heap, std::byte* destination, const void* source,
                                            std::uint64_t count, unsigned element, int rank) {
  const ProxiedAccess<Gpu> far(heap.block(), heap.terms());
  const ProxyRequest request = far.request_for(source, count, element, rank);
  if (count != 0) far.template get<scope>(request, destination, 1);
}
// One piece of bytes, for a warp or a block: its ticket, for ProxiedAccess::end().
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART std::uint64_t piece_far(HandedHeap<Gpu> heap, const void* source, std::uint64_t bytes,
                                                       int rank) {
  const ProxiedAccess<Gpu> far(heap.block(), heap.terms());
  ProxyRequest request = far.request_for(source, bytes, 1, rank);
  request.move = ProxyMove::get;
  request.answered = 1;
  return far.template ask<scope>(request);
}
// The same by a request with whatever it has.
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void put_by_proxy(HandedHeap<Gpu> heap, const ProxyRequest& request,
                                                 const std::byte* source, std::uint64_t source_apart) {
  ProxiedAccess<Gpu>(heap.block(), heap.terms()).template put<scope>(request, source, source_apart);
}
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void get_by_proxy(HandedHeap<Gpu> heap, const ProxyRequest& request,
                                                 std::byte* destination, std::uint64_t destination_apart) {
  ProxiedAccess<Gpu>(heap.block(), heap.terms()).template get<scope>(request, destination, destination_apart);
}

template <typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void complete_far(HandedHeap<Gpu> heap) {
  ProxiedAccess<Gpu>(heap.block(), heap.terms()).complete_all();
}

}  // namespace waywiser::one_sided
