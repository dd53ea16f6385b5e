#pragma once

#include "waywiser/heap/device/reached_heap.hpp"

namespace waywiser::one_sided {

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
    T* to = this->place(destination, count, rank);
    gpu().join(scope);
    gpu().give(scope, bytes(to), bytes(source), count * sizeof(T));
    gpu().join(scope);
  }
  // The elements are there when it returns.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void get(T* destination, const T* source, std::uint64_t count, int rank) const {
    const T* from = this->place(source, count, rank);
    gpu().join(scope);
    gpu().take(scope, bytes(destination), bytes(from), count * sizeof(T));
    gpu().join(scope);
  }
  // The elements are there after quiet().
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void get_nbi(T* destination, const T* source, std::uint64_t count, int rank) const {
    const T* from = this->place(source, count, rank);
    gpu().join(scope);
    gpu().take_later(scope, bytes(destination), bytes(from), count * sizeof(T));
    gpu().join(scope);
  }
  // One word of 4 or 8 bytes, by one thread.
  template <typename T>
  WAYWISER_DEVICE void p(T* destination, T value, int rank) const {
    check_word<T>();
    gpu().write(this->place(destination, 1, rank), value);
  }
  template <typename T>
  WAYWISER_DEVICE T g(const T* source, int rank) const {
    check_word<T>();
    return gpu().read(this->place(source, 1, rank));
  }
  // Elements that lie apart by so many elements in the destination and the source.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void iput(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                            std::uint64_t count, int rank) const {
    T* to = this->place(destination, count == 0 ? 0 : (count - 1) * apart + 1, rank);
    gpu().join(scope);
    for (std::uint64_t i = gpu().index_in(scope); i < count; i += gpu().count_of(scope))
      gpu().give(Scope::thread, bytes(to + i * apart), bytes(source + i * source_apart), sizeof(T));
    gpu().join(scope);
  }
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void iget(T* destination, const T* source, std::uint64_t apart, std::uint64_t source_apart,
                            std::uint64_t count, int rank) const {
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
    std::uint64_t* word = this->place(signal, 1, rank);
    put<scope>(destination, source, count, rank);
    if (gpu().index_in(scope) != 0) return;
    if (op == SignalOp::set)
      gpu().release(word, value);
    else
      gpu().release_add(word, value);
  }
  // Signals alone, by one thread: nothing orders them behind earlier puts but fence() or quiet().
  WAYWISER_DEVICE void signal_set(std::uint64_t* signal, std::uint64_t value, int rank) const {
    gpu().write(this->place(signal, 1, rank), value);
  }
  WAYWISER_DEVICE void signal_add(std::uint64_t* signal, std::uint64_t value, int rank) const {
    gpu().fetch_add(this->place(signal, 1, rank), value);
  }

  // Puts, signals and atomics of these threads that come later are seen after the earlier ones.
  template <Scope scope = Scope::thread>
  WAYWISER_DEVICE void fence() const {
    gpu().join(scope);
    gpu().fence();
    gpu().join(scope);
  }
  // All earlier ones of these threads are complete, gets as well.
  template <Scope scope = Scope::thread>
  WAYWISER_DEVICE void quiet() const {
    gpu().join(scope);
    gpu().quiet();
    gpu().join(scope);
  }

 protected:
  template <typename T>
  WAYWISER_DEVICE static constexpr void check_word() {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word has 4 or 8 bytes: use put or get");
  }

 private:
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
