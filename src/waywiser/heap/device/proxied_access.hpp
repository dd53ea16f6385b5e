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
        if (gpu().index_in(scope) == 0) post(ticket, request);
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
        const std::uint64_t ticket = take_ticket<scope>(request);
        if (gpu().index_in(scope) == 0) {
          post(ticket, request);
          wait_for_answer(ticket, request);
        }
        gpu().join(scope);
        use_piece(ticket);
        gpu().join(scope);
        if (gpu().index_in(scope) == 0) give_back(ticket);
      }
      request.offset += request.count * request.apart;
    }
    gpu().join(scope);
  }
  // An operation on a word, by one thread. Returns the word before it if it is to be answered.
  WAYWISER_DEVICE std::uint64_t on_word(const ProxyRequest& request) const {
    std::uint64_t result = 0;
    carry(
        request, [](std::uint64_t) {},
        [&](std::uint64_t ticket) { result = gpu().read(&terms().ring->slot(ticket).result); });
    return result;
  }
  // Until all that this rank's kernels have asked for before is complete.
  WAYWISER_DEVICE void complete_all() const {
    const std::uint64_t asked = gpu().read(terms().tickets);
    const std::uint64_t* completed = &terms().ring->completed;
    this->wait([&] { return gpu().acquire(completed) >= asked; },
               [&] {
                 const std::uint64_t first = gpu().read(completed);
                 stop_late(terms().ring->slot(first).request);
               });
  }

 private:
  WAYWISER_DEVICE void stop_late(const ProxyRequest& request) const {
    this->stop(FaultReason::proxy_late, request.rank, request.count == 0 ? request.word : request.offset,
               request.count == 0 ? 8 : request.bytes());
  }
  // All threads of the scope get it when its slot is free.
  template <Scope scope>
  WAYWISER_DEVICE std::uint64_t take_ticket(const ProxyRequest& request) const {
    std::uint64_t ticket = 0;
    gpu().join(scope);
    if (gpu().index_in(scope) == 0) {
      ticket = gpu().fetch_add(terms().tickets, std::uint64_t{1});
      const std::uint64_t* free_for = &terms().ring->slot(ticket).free_for;
      this->wait([&] { return gpu().acquire(free_for) == ticket; }, [&] { stop_late(request); });
    }
    return gpu().of_first(scope, ticket);
  }
  // One access by one thread, in one wait: fill(ticket) when its slot is free, take(ticket) when it has been answered.
  // Lanes of a warp that wait may go on together only, when the last one can. So none may have a slot, which others
  // wait for, and need to go on to give it back.
  template <typename Fill, typename Take>
  WAYWISER_DEVICE void carry(const ProxyRequest& request, Fill fill, Take take) const {
    const std::uint64_t ticket = gpu().fetch_add(terms().tickets, std::uint64_t{1});
    const ProxySlot& slot = terms().ring->slot(ticket);
    bool posted = false, ended = false;
    this->wait(
        [&] {
          if (!posted && gpu().acquire(&slot.free_for) == ticket) {
            fill(ticket);
            post(ticket, request);
            posted = true;
            ended = request.answered == 0;
          }
          if (posted && !ended && gpu().acquire(&slot.done) == ticket + 1) {
            take(ticket);
            give_back(ticket);
            ended = true;
          }
          return ended;
        },
        [&] { stop_late(request); });
  }
  WAYWISER_DEVICE void post(std::uint64_t ticket, const ProxyRequest& request) const {
    ProxySlot& slot = terms().ring->slot(ticket);
    slot.request = request;
    gpu().release(&slot.asked, ticket + 1);
  }
  WAYWISER_DEVICE void wait_for_answer(std::uint64_t ticket, const ProxyRequest& request) const {
    const std::uint64_t* done = &terms().ring->slot(ticket).done;
    this->wait([&] { return gpu().acquire(done) == ticket + 1; }, [&] { stop_late(request); });
  }
  WAYWISER_DEVICE void give_back(std::uint64_t ticket) const {
    gpu().release(&terms().ring->slot(ticket).free_for, ticket + proxy_slots);
  }
  template <Scope scope>
  WAYWISER_DEVICE void move(std::byte* to, std::uint64_t to_apart, const std::byte* from, std::uint64_t from_apart,
                            const ProxyRequest& request) const {
    if (to_apart == request.element && from_apart == request.element)
      return gpu().take(scope, to, from, request.bytes());
    for (std::uint64_t i = gpu().index_in(scope); i < request.count; i += gpu().count_of(scope))
      gpu().take(Scope::thread, to + i * to_apart, from + i * from_apart, request.element);
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

// By copies of what a caller has, so that its own objects stay in registers.
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void put_by_proxy(Gpu& gpu, const HeapTerms& terms, const ProxyRequest& request,
                                                 const std::byte* source, std::uint64_t source_apart) {
  ProxiedAccess<Gpu>(gpu, terms).template put<scope>(request, source, source_apart);
}
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void get_by_proxy(Gpu& gpu, const HeapTerms& terms, const ProxyRequest& request,
                                                 std::byte* destination, std::uint64_t destination_apart) {
  ProxiedAccess<Gpu>(gpu, terms).template get<scope>(request, destination, destination_apart);
}
template <typename Gpu>
WAYWISER_DEVICE WAYWISER_APART std::uint64_t word_by_proxy(Gpu& gpu, const HeapTerms& terms,
                                                           const ProxyRequest& request) {
  return ProxiedAccess<Gpu>(gpu, terms).on_word(request);
}
template <typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void complete_by_proxy(Gpu& gpu, const HeapTerms& terms) {
  ProxiedAccess<Gpu>(gpu, terms).complete_all();
}

}  // namespace waywiser::one_sided
