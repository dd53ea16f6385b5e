#pragma once

#include "waywiser/heap/device/proxied_access.hpp"

namespace waywiser::one_sided {

// A piece is loaded into a stage and stored from there; what load() and store() begin is over when a wait says so.
// Addresses and bytes are multiples of 16. By one thread. `Bulk`: HostBulk, CudaBulk.
template <typename Bulk>
WAYWISER_DEVICE void bulk_copy(const Bulk& bulk, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t piece = bulk.piece(), pieces = (bytes + piece - 1) / piece;
  const auto length = [&](std::uint64_t i) {
    return static_cast<unsigned>(bytes - i * piece < piece ? bytes - i * piece : piece);
  };
  const auto load = [&](std::uint64_t i) {
    bulk.load(static_cast<unsigned>(i % bulk_stages), from + i * piece, length(i));
  };
  bulk.begin();
  for (std::uint64_t i = 0; i < bulk_stages && i < pieces; ++i) load(i);
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const auto stage = static_cast<unsigned>(i % bulk_stages);
    bulk.wait_loaded(stage, static_cast<unsigned>(i / bulk_stages));
    bulk.store(stage, to + i * piece, length(i));
    if (i == 0 || i - 1 + bulk_stages >= pieces) continue;
    bulk.wait_read_but_newest();  // the stage of the store before is free
    load(i - 1 + bulk_stages);
  }
  bulk.wait_stored();
  bulk.end();
}

// A put by a block: all of its threads, which join at the beginning and the end. False, and nothing is done: without
// memory between, or if the addresses do not lie alike.
template <typename Gpu>
WAYWISER_DEVICE bool give_in_bulk(Gpu& gpu, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(to);
  const std::uint64_t head = (16 - at % 16) % 16;
  if (!gpu.has_bulk() || (at ^ reinterpret_cast<std::uintptr_t>(from)) % 16 != 0 || bytes < head + 16) return false;
  const std::uint64_t middle = (bytes - head) / 16 * 16, tail = head + middle;
  gpu.order_bulk();
  gpu.join(Scope::block);
  if (gpu.index_in(Scope::block) == 0) bulk_copy(gpu.bulk(), to + head, from + head, middle);
  gpu.give(Scope::block, to, from, head);
  gpu.give(Scope::block, to + tail, from + tail, bytes - tail);
  gpu.join(Scope::block);
  return true;
}

// Puts and gets, which move `count` elements, signals, and what orders them. `Scope`: the threads that make the call
// together, with equal arguments; those of a warp or a block join at its beginning and its end. The memory of another
// rank is named by the same place in this rank's own memory; with the rank `opened`, by the address that Heap::open has
// given.
template <typename Gpu>
class Transfers : public ReachedHeap<Gpu> {
 public:
  using ReachedHeap<Gpu>::ReachedHeap;
  using ReachedHeap<Gpu>::gpu;

  // `source` may be reused when it returns; quiet() says when the elements are there.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void put(T* destination, const T* source, std::uint64_t count, int rank) const {
    if (this->is_proxied(rank)) return put_elements<scope>(destination, source, count, 1, 1, rank);
    T* to = this->place(destination, count, rank);
    if constexpr (scope == Scope::block && Gpu::is_staged)
      if (count * sizeof(T) >= this->terms().protocols.bulk &&
          give_in_bulk(gpu(), bytes(to), bytes(source), count * sizeof(T)))
        return;
    gpu().join(scope);
    gpu().give(scope, bytes(to), bytes(source), count * sizeof(T));
    gpu().join(scope);
  }
  // The elements are there when it returns.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void get(T* destination, const T* source, std::uint64_t count, int rank) const {
    if (this->is_proxied(rank)) return get_elements<scope>(destination, source, count, 1, 1, rank);
    const T* from = this->place(source, count, rank);
    gpu().join(scope);
    gpu().take(scope, bytes(destination), bytes(from), count * sizeof(T));
    gpu().join(scope);
  }
  // The elements are there after quiet().
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void get_nbi(T* destination, const T* source, std::uint64_t count, int rank) const {
    if (this->is_proxied(rank)) return get_elements<scope>(destination, source, count, 1, 1, rank);
    const T* from = this->place(source, count, rank);
    gpu().join(scope);
    gpu().take_later(scope, bytes(destination), bytes(from), count * sizeof(T));
    gpu().join(scope);
  }
  // One word of 4 or 8 bytes, by one thread.
  template <typename T>
  WAYWISER_DEVICE void p(T* destination, T value, int rank) const {
    check_word<T>();
    if (this->is_proxied(rank))
      static_cast<void>(on_word(destination, WordOp::set, value, value, false, rank));
    else
      gpu().write(this->place(destination, 1, rank), value);
  }
  template <typename T>
  WAYWISER_DEVICE T g(const T* source, int rank) const {
    check_word<T>();
    if (this->is_proxied(rank)) return on_word(source, WordOp::read, T{}, T{}, true, rank);
    return gpu().read(this->place(source, 1, rank));
  }
  // Elements that lie apart by so many elements in the destination and the source.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void iput(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                            std::uint64_t count, int rank) const {
    static_assert(sizeof(T) <= proxy_piece);
    if (this->is_proxied(rank)) return put_elements<scope>(destination, source, count, apart, source_apart, rank);
    T* to = this->place(destination, count == 0 ? 0 : (count - 1) * apart + 1, rank);
    gpu().join(scope);
    for (std::uint64_t i = gpu().index_in(scope); i < count; i += gpu().count_of(scope))
      gpu().give(Scope::thread, bytes(to + i * apart), bytes(source + i * source_apart), sizeof(T));
    gpu().join(scope);
  }
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void iget(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                            std::uint64_t count, int rank) const {
    static_assert(sizeof(T) <= proxy_piece);
    if (this->is_proxied(rank)) return get_elements<scope>(destination, source, count, source_apart, apart, rank);
    const T* from = this->place(source, count == 0 ? 0 : (count - 1) * source_apart + 1, rank);
    gpu().join(scope);
    for (std::uint64_t i = gpu().index_in(scope); i < count; i += gpu().count_of(scope))
      gpu().take(Scope::thread, bytes(destination + i * apart), bytes(from + i * source_apart), sizeof(T));
    gpu().join(scope);
  }
  // A put, and a signal that whoever waits for it sees after the elements.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void put_with_signal(T* destination, const T* source, std::uint64_t count, std::uint64_t* signal,
                                       std::uint64_t value, SignalOp op, int rank) const {
    if (this->is_proxied(rank)) {
      ProxyRequest request = request_for(destination, count, 1, true, rank);
      request.word = this->checked_offset(signal, 1, rank);
      request.op = op == SignalOp::set ? WordOp::set : WordOp::add;
      request.value = value;
      request.after_all = 1;
      return put_by_proxy<scope>(gpu(), this->terms(), request, bytes(source), 1);
    }
    std::uint64_t* word = this->place(signal, 1, rank);
    put<scope>(destination, source, count, rank);
    if (gpu().index_in(scope) != 0) return;
    if (this->has_proxy()) complete_by_proxy(gpu(), this->terms());
    if (op == SignalOp::set)
      gpu().release(word, value);
    else
      gpu().release_add(word, value);
  }
  // Signals alone, by one thread: nothing orders them behind earlier puts but fence() or quiet().
  WAYWISER_DEVICE void signal_set(std::uint64_t* signal, std::uint64_t value, int rank) const {
    p(signal, value, rank);
  }
  WAYWISER_DEVICE void signal_add(std::uint64_t* signal, std::uint64_t value, int rank) const {
    if (this->is_proxied(rank))
      static_cast<void>(on_word(signal, WordOp::add, value, value, false, rank));
    else
      gpu().fetch_add(this->place(signal, 1, rank), value);
  }

  // Puts, signals and atomics of these threads that come later are seen after the earlier ones.
  template <Scope scope = Scope::thread>
  WAYWISER_DEVICE void fence() const {
    gpu().join(scope);
    if (this->has_proxy()) complete_by_proxy(gpu(), this->terms());
    gpu().fence();
    gpu().join(scope);
  }
  // All earlier ones of these threads are complete, gets as well.
  template <Scope scope = Scope::thread>
  WAYWISER_DEVICE void quiet() const {
    gpu().join(scope);
    if (this->has_proxy()) complete_by_proxy(gpu(), this->terms());
    gpu().quiet();
    gpu().join(scope);
  }

 protected:
  template <typename T>
  WAYWISER_DEVICE static constexpr void check_word() {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word has 4 or 8 bytes: use put or get");
  }

  // An operation by the proxy; the word before it, if `answered`.
  template <typename T>
  WAYWISER_DEVICE T on_word(const T* word, WordOp op, std::type_identity_t<T> value, std::type_identity_t<T> expected,
                            bool answered, int rank) const {
    ProxyRequest request;
    request.rank = rank;
    request.word = this->checked_offset(word, 1, rank);
    request.op = op;
    request.type = word_type<T>();
    request.value = word_bits(value);
    request.expected = word_bits(expected);
    request.answered = answered ? 1 : 0;
    return word_of_bits<T>(word_by_proxy(gpu(), this->terms(), request));
  }

 private:
  // `apart`: in elements. `as_bytes`: they are consecutive at both ranks.
  template <typename T>
  WAYWISER_DEVICE ProxyRequest request_for(const T* there, std::uint64_t count, std::uint64_t apart, bool as_bytes,
                                           int rank) const {
    ProxyRequest request;
    request.rank = rank;
    request.offset = this->checked_offset(there, count == 0 ? 0 : (count - 1) * apart + 1, rank);
    request.count = as_bytes ? count * sizeof(T) : count;
    request.element = as_bytes ? 1 : sizeof(T);
    request.apart = as_bytes ? 1 : apart * sizeof(T);
    return request;
  }
  template <Scope scope, typename T>
  WAYWISER_DEVICE void put_elements(T* destination, const T* source, std::uint64_t count, std::uint64_t apart,
                                    std::uint64_t source_apart, int rank) const {
    const bool as_bytes = apart == 1 && source_apart == 1;
    const ProxyRequest request = request_for(destination, count, apart, as_bytes, rank);
    if (count != 0)
      put_by_proxy<scope>(gpu(), this->terms(), request, bytes(source), as_bytes ? 1 : source_apart * sizeof(T));
  }
  template <Scope scope, typename T>
  WAYWISER_DEVICE void get_elements(T* destination, const T* source, std::uint64_t count, std::uint64_t apart,
                                    std::uint64_t own_apart, int rank) const {
    const bool as_bytes = apart == 1 && own_apart == 1;
    const ProxyRequest request = request_for(source, count, apart, as_bytes, rank);
    if (count != 0)
      get_by_proxy<scope>(gpu(), this->terms(), request, bytes(destination), as_bytes ? 1 : own_apart * sizeof(T));
  }
  template <typename T>
  WAYWISER_DEVICE static std::byte* bytes(T* data) {
    return reinterpret_cast<std::byte*>(data);
  }
  template <typename T>
  WAYWISER_DEVICE static const std::byte* bytes(const T* data) {
    return reinterpret_cast<const std::byte*>(data);
  }
};

}  // namespace waywiser::one_sided
