#pragma once

#include <type_traits>

#include "waywiser/heap/device/transfers.hpp"

namespace waywiser::one_sided {

// One-sided communication for a block of threads: CudaHeapBlock in a kernel, HostHeapBlock on virtual GPUs and hosts.
// Atomics and waits are calls of one thread, for words of 4 or 8 bytes.
template <typename Gpu>
class OneSided : public Transfers<Gpu> {
 public:
  using Transfers<Gpu>::Transfers;
  using ReachedHeap<Gpu>::gpu;

  // Atomics order nothing. add and fetch_add also take float and double; the bits of others are whole numbers.
  template <typename T>
  WAYWISER_DEVICE T atomic_fetch(const T* source, int rank) const {
    return this->g(source, rank);
  }
  template <typename T>
  WAYWISER_DEVICE void atomic_set(T* destination, std::type_identity_t<T> value, int rank) const {
    this->p(destination, value, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T atomic_fetch_add(T* destination, std::type_identity_t<T> value, int rank) const {
    T* to = word(destination, rank);
    return to == nullptr ? this->ask_word(destination, WordOp::add, value, value, rank) : gpu().fetch_add(to, value);
  }
  template <typename T>
  WAYWISER_DEVICE void atomic_add(T* destination, std::type_identity_t<T> value, int rank) const {
    if (T* to = word(destination, rank))
      gpu().add_to(to, value);
    else
      this->change_word(destination, WordOp::add, value, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T atomic_fetch_inc(T* destination, int rank) const {
    return atomic_fetch_add(destination, T{1}, rank);
  }
  template <typename T>
  WAYWISER_DEVICE void atomic_inc(T* destination, int rank) const {
    atomic_add(destination, T{1}, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T atomic_swap(T* destination, std::type_identity_t<T> value, int rank) const {
    T* to = whole(destination, rank);
    return to == nullptr ? on_whole(destination, WordOp::swap, value, value, rank) : gpu().exchange(to, value);
  }
  // Writes `value` if the word is `expected`; returns the word before.
  template <typename T>
  WAYWISER_DEVICE T atomic_compare_swap(T* destination, std::type_identity_t<T> expected, std::type_identity_t<T> value,
                                        int rank) const {
    T* to = whole(destination, rank);
    return to == nullptr ? on_whole(destination, WordOp::compare_swap, value, expected, rank)
                         : gpu().compare_exchange(to, expected, value);
  }
  template <typename T>
  WAYWISER_DEVICE T atomic_fetch_and(T* destination, std::type_identity_t<T> value, int rank) const {
    T* to = whole(destination, rank);
    return to == nullptr ? on_whole(destination, WordOp::bit_and, value, value, rank) : gpu().fetch_and(to, value);
  }
  template <typename T>
  WAYWISER_DEVICE T atomic_fetch_or(T* destination, std::type_identity_t<T> value, int rank) const {
    T* to = whole(destination, rank);
    return to == nullptr ? on_whole(destination, WordOp::bit_or, value, value, rank) : gpu().fetch_or(to, value);
  }
  template <typename T>
  WAYWISER_DEVICE T atomic_fetch_xor(T* destination, std::type_identity_t<T> value, int rank) const {
    T* to = whole(destination, rank);
    return to == nullptr ? on_whole(destination, WordOp::bit_xor, value, value, rank) : gpu().fetch_xor(to, value);
  }

  // Whether a word of this rank compares so, now. After true, what its writer has ordered before it is visible.
  template <typename T>
  WAYWISER_DEVICE bool test(const T* word, Comparison how, std::type_identity_t<T> value) const {
    return compares(acquired(word), how, value);
  }
  // Until it does. `from`: the rank that is to change it, for the error. By all threads of the scope.
  template <Scope scope = Scope::thread, typename T>
  WAYWISER_DEVICE void wait_until(const T* word, Comparison how, std::type_identity_t<T> value,
                                  int from = any_rank) const {
    gpu().join(scope);
    if (gpu().index_in(scope) == 0)
      this->wait([&] { return test(word, how, value); },
                 [&] { this->stop_late(word, how, value, gpu().read(word), from); });
    gpu().join(scope);
  }
  // Of `count` words, those whose `status` is not 0 are left out; nullptr: none is. If none is left: test_all and
  // wait_until_all are over, the others find none.
  template <typename T>
  WAYWISER_DEVICE bool test_all(const T* words, std::uint64_t count, const int* status, Comparison how,
                                std::type_identity_t<T> value) const {
    return first_of(words, count, status, how, value, false) == count;
  }
  // The place of one that compares so; `count`: there is none.
  template <typename T>
  WAYWISER_DEVICE std::uint64_t test_any(const T* words, std::uint64_t count, const int* status, Comparison how,
                                         std::type_identity_t<T> value) const {
    return first_of(words, count, status, how, value, true);
  }
  // The places of those that compare so go to `places`; returns their number.
  template <typename T>
  WAYWISER_DEVICE std::uint64_t test_some(const T* words, std::uint64_t count, std::uint64_t* places, const int* status,
                                          Comparison how, std::type_identity_t<T> value) const {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < count; ++i)
      if (counts(status, i) && test(words + i, how, value)) places[found++] = i;
    return found;
  }
  template <typename T>
  WAYWISER_DEVICE void wait_until_all(const T* words, std::uint64_t count, const int* status, Comparison how,
                                      std::type_identity_t<T> value) const {
    for (std::uint64_t i = 0; i < count; ++i)
      if (counts(status, i)) wait_until(words + i, how, value);
  }
  template <typename T>
  WAYWISER_DEVICE std::uint64_t wait_until_any(const T* words, std::uint64_t count, const int* status, Comparison how,
                                               std::type_identity_t<T> value) const {
    std::uint64_t found = count;
    const std::uint64_t first = first_counted(count, status);
    if (first == count) return count;
    this->wait([&] { return (found = test_any(words, count, status, how, value)) != count; },
               [&] { this->stop_late(words + first, how, value, gpu().read(words + first), any_rank); });
    return found;
  }
  template <typename T>
  WAYWISER_DEVICE std::uint64_t wait_until_some(const T* words, std::uint64_t count, std::uint64_t* places,
                                                const int* status, Comparison how,
                                                std::type_identity_t<T> value) const {
    if (wait_until_any(words, count, status, how, value) == count) return 0;
    return test_some(words, count, places, status, how, value);
  }
  // Each word has a value of its own.
  template <typename T>
  WAYWISER_DEVICE void wait_until_all_vector(const T* words, std::uint64_t count, const int* status, Comparison how,
                                             const T* values) const {
    for (std::uint64_t i = 0; i < count; ++i)
      if (counts(status, i)) wait_until(words + i, how, values[i]);
  }

 private:
  // Where it is; nullptr: the proxy carries the access.
  template <typename T>
  WAYWISER_DEVICE T* word(T* destination, int rank) const {
    this->template check_word<T>();
    return this->near(destination, 1, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T* whole(T* destination, int rank) const {
    static_assert(std::is_integral_v<T>, "this atomic takes whole numbers only");
    return word(destination, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T on_whole(T* destination, WordOp op, T value, T expected, int rank) const {
    static_assert(std::is_integral_v<T>, "this atomic takes whole numbers only");
    return this->ask_word(destination, op, value, expected, rank);
  }
  template <typename T>
  WAYWISER_DEVICE T acquired(const T* word) const {
    this->template check_word<T>();
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    static_assert(std::is_integral_v<T>, "a wait compares whole numbers");
    return static_cast<T>(gpu().acquire(reinterpret_cast<const Bits*>(word)));
  }
  WAYWISER_DEVICE static bool counts(const int* status, std::uint64_t i) { return status == nullptr || status[i] == 0; }
  WAYWISER_DEVICE static std::uint64_t first_counted(std::uint64_t count, const int* status) {
    std::uint64_t first = 0;
    while (first < count && !counts(status, first)) ++first;
    return first;
  }
  // The first word that counts and compares so, or does not; `count`: there is none.
  template <typename T>
  WAYWISER_DEVICE std::uint64_t first_of(const T* words, std::uint64_t count, const int* status, Comparison how,
                                         T value, bool so) const {
    for (std::uint64_t i = 0; i < count; ++i)
      if (counts(status, i) && test(words + i, how, value) == so) return i;
    return count;
  }
};

}  // namespace waywiser::one_sided
