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
  // Even a copy of nothing takes a third of a microsecond here.
  if (head != 0) gpu.take_apart(Scope::block, to, from, head);
  if (tail != bytes) gpu.take_apart(Scope::block, to + tail, from + tail, bytes - tail);
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
    T* to = near(destination, count, rank);
    if (to == nullptr)
      return put_far<scope, Gpu>({gpu(), this->terms()}, destination, bytes(source), count, sizeof(T), rank);
    put_near<scope>(to, source, count, [] {});
  }
  // The elements are there when it returns.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void get(T* destination, const T* source, std::uint64_t count, int rank) const {
    const T* from = near(source, count, rank);
    if (from == nullptr)
      return get_far<scope, Gpu>({gpu(), this->terms()}, bytes(destination), source, count, sizeof(T), rank);
    gpu().join(scope);
    gpu().take(scope, bytes(destination), bytes(from), count * sizeof(T));
    gpu().join(scope);
  }
  // The elements are there after quiet().
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void get_nbi(T* destination, const T* source, std::uint64_t count, int rank) const {
    const T* from = near(source, count, rank);
    if (from == nullptr)
      return get_far<scope, Gpu>({gpu(), this->terms()}, bytes(destination), source, count, sizeof(T), rank);
    gpu().join(scope);
    gpu().take_later(scope, bytes(destination), bytes(from), count * sizeof(T));
    gpu().join(scope);
  }
  // One word of 4 or 8 bytes, by one thread.
  template <typename T>
  WAYWISER_DEVICE void p(T* destination, T value, int rank) const {
    check_word<T>();
    if (T* to = near(destination, 1, rank))
      gpu().write(to, value);
    else
      change_word(destination, WordOp::set, value, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T g(const T* source, int rank) const {
    check_word<T>();
    const T* from = near(source, 1, rank);
    return from == nullptr ? ask_word(source, WordOp::read, T{}, T{}, rank) : gpu().read(from);
  }
  // Elements that lie apart by so many elements in the destination and the source.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void iput(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                            std::uint64_t count, int rank) const {
    static_assert(sizeof(T) <= proxy_piece);
    T* to = near(destination, count == 0 ? 0 : (count - 1) * apart + 1, rank);
    if (to == nullptr) return iput_far<scope>(destination, source, apart, source_apart, count, rank);
    gpu().join(scope);
    for (std::uint64_t i = gpu().index_in(scope); i < count; i += gpu().count_of(scope))
      gpu().give(Scope::thread, bytes(to + i * apart), bytes(source + i * source_apart), sizeof(T));
    gpu().join(scope);
  }
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void iget(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                            std::uint64_t count, int rank) const {
    static_assert(sizeof(T) <= proxy_piece);
    const T* from = near(source, count == 0 ? 0 : (count - 1) * source_apart + 1, rank);
    if (from == nullptr) return iget_far<scope>(destination, source, apart, source_apart, count, rank);
    gpu().join(scope);
    for (std::uint64_t i = gpu().index_in(scope); i < count; i += gpu().count_of(scope))
      gpu().take(Scope::thread, bytes(destination + i * apart), bytes(from + i * source_apart), sizeof(T));
    gpu().join(scope);
  }
  // A put, and a signal that whoever waits for it sees after the elements.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void put_with_signal(T* destination, const T* source, std::uint64_t count, std::uint64_t* signal,
                                       std::uint64_t value, SignalOp op, int rank) const {
    T* to = near(destination, count, rank);
    if (to == nullptr)
      return put_signal_far<scope, Gpu>({gpu(), this->terms()}, destination, bytes(source), count, sizeof(T), signal,
                                        value, op, rank);
    const bool is_first = gpu().index_in(scope) == 0;
    std::uint64_t* word = nullptr;
    put_near<scope>(to, source, count, [&] {
      if (is_first) word = near(signal, 1, rank);  // or the kernel stops
    });
    if (!is_first) return;
    if (this->has_proxy()) complete_far<Gpu>({gpu(), this->terms()});
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
    if (std::uint64_t* word = near(signal, 1, rank))
      gpu().add_to(word, value);
    else
      change_word(signal, WordOp::add, value, rank);
  }

  // Puts, signals and atomics of these threads that come later are seen after the earlier ones.
  template <Scope scope = Scope::thread>
  WAYWISER_DEVICE void fence() const {
    gpu().join(scope);
    if (this->has_proxy()) complete_far<Gpu>({gpu(), this->terms()});
    gpu().fence();
    gpu().join(scope);
  }
  // All earlier ones of these threads are complete, gets as well.
  template <Scope scope = Scope::thread>
  WAYWISER_DEVICE void quiet() const {
    gpu().join(scope);
    if (this->has_proxy()) complete_far<Gpu>({gpu(), this->terms()});
    gpu().quiet();
    gpu().join(scope);
  }

 protected:
  template <typename T>
  WAYWISER_DEVICE static constexpr void check_word() {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word has 4 or 8 bytes: use put or get");
  }

  // Where an access goes by stores; nullptr: by the proxy.
  template <typename T>
  WAYWISER_DEVICE T* near(T* symmetric, std::uint64_t count, int rank) const {
    T* there = this->straight(symmetric, count, rank);
    if (there == nullptr && !this->is_proxied(rank)) {
      this->need_heap();
      stop_access<Gpu>({gpu(), this->terms()}, symmetric, bytes_of(count, sizeof(T)), rank);
    }
    return there;
  }
  // An operation by the proxy; the second one returns the word before it.
  template <typename T>
  WAYWISER_DEVICE void change_word(T* word, WordOp op, std::type_identity_t<T> value, int rank) const {
    const ProxiedAccess<Gpu> far(gpu(), this->terms());
    far.change_word(far.far_offset(word, 1, sizeof(T), rank), word_bits(value), op, word_type<T>(), rank);
  }
  template <typename T>
  WAYWISER_DEVICE T ask_word(const T* word, WordOp op, std::type_identity_t<T> value, std::type_identity_t<T> expected,
                             int rank) const {
    const ProxiedAccess<Gpu> far(gpu(), this->terms());
    return word_of_bits<T>(far.ask_word(far.far_offset(word, 1, sizeof(T), rank), word_bits(value), word_bits(expected),
                                        op, word_type<T>(), rank));
  }

 private:
  // A put by stores. Each thread calls beside() before the last join, where others still copy.
  template <Scope scope, typename T, typename Beside>
  WAYWISER_DEVICE void put_near(T* to, const T* source, std::uint64_t count, Beside beside) const {
    if constexpr (scope == Scope::block && Gpu::is_staged)
      if (count * sizeof(T) >= this->terms().protocols.bulk &&
          give_in_bulk(gpu(), bytes(to), bytes(source), count * sizeof(T)))
        return beside();
    gpu().join(scope);
    gpu().give(scope, bytes(to), bytes(source), count * sizeof(T));
    beside();
    gpu().join(scope);
  }
  template <Scope scope, typename T>
  WAYWISER_DEVICE void iput_far(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                                std::uint64_t count, int rank) const {
    const ProxyRequest request = request_for(destination, count, apart, rank);
    if (count != 0) put_by_proxy<scope, Gpu>({gpu(), this->terms()}, request, bytes(source), source_apart * sizeof(T));
  }
  template <Scope scope, typename T>
  WAYWISER_DEVICE void iget_far(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                                std::uint64_t count, int rank) const {
    const ProxyRequest request = request_for(source, count, source_apart, rank);
    if (count != 0) get_by_proxy<scope, Gpu>({gpu(), this->terms()}, request, bytes(destination), apart * sizeof(T));
  }
  // `apart`: in elements.
  template <typename T>
  WAYWISER_DEVICE ProxyRequest request_for(const T* there, std::uint64_t count, std::uint64_t apart, int rank) const {
    ProxyRequest request;
    const std::uint64_t all = count == 0 ? 0 : (count - 1) * apart + 1;
    request.rank = rank;
    request.offset = ProxiedAccess<Gpu>(gpu(), this->terms()).far_offset(there, all, sizeof(T), rank);
    request.count = count;
    request.element = sizeof(T);
    request.apart = apart * sizeof(T);
    return request;
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
