#pragma once

#include <atomic>
#include <cstring>
#include <type_traits>

#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/block/host_block.hpp"
#include "waywiser/kernels/copy_body.hpp"

namespace waywiser::one_sided {

// The thread sanitizer does not know fences: there each access orders what fences order elsewhere. Tests that carry out
// stores in any order find a fence that is missing.
#ifdef __SANITIZE_THREAD__
inline constexpr auto order_of_load = std::memory_order_acquire, order_of_store = std::memory_order_release,
                      order_of_change = std::memory_order_acq_rel;
#else
inline constexpr auto order_of_load = std::memory_order_relaxed, order_of_store = std::memory_order_relaxed,
                      order_of_change = std::memory_order_relaxed;
#endif

// Pieces of a copy through memory between, on a host: the twin of CudaBulk.
class HostBulk {
 public:
  HostBulk() = default;
  HostBulk(std::byte* memory, unsigned bytes) : memory_(memory), piece_(bulk_piece_of(bytes)) {}

  unsigned piece() const { return piece_; }
  void begin() const {}
  void load(unsigned stage, const std::byte* from, unsigned bytes) const { std::memcpy(at(stage), from, bytes); }
  void wait_loaded(unsigned /*stage*/, unsigned /*turn*/) const {}
  void store(unsigned stage, std::byte* to, unsigned bytes) const { std::memcpy(to, at(stage), bytes); }
  // All stages are read but that of the newest store; all stores are over.
  void wait_read_but_newest() const {}
  void wait_stored() const {}
  void end() const {}

 private:
  std::byte* at(unsigned stage) const { return memory_ + bulk_barriers + std::size_t{stage} * piece_; }

  std::byte* memory_ = nullptr;
  unsigned piece_ = 0;  // bytes of a stage; 0: there is no memory between
};

// A HostBlock that also has what one-sided communication needs: the twin of CudaHeapBlock. Its thread is alone in each
// scope.
class HostHeapBlock : public block::HostBlock {
 public:
  static constexpr bool is_staged = false;

  explicit HostHeapBlock(unsigned block = 0, unsigned blocks = 1, unsigned threads = 1)
      : HostBlock(block, blocks, threads) {}

  // f(warp) by all threads of each warp together.
  template <typename Function>
  void each_warp(Function f) const {
    for (unsigned warp = 0; warp < (threads() + 31) / 32; ++warp) f(warp);
  }
  unsigned index_in(Scope) const { return 0; }
  unsigned count_of(Scope) const { return 1; }
  void join(Scope) const {}
  // Whether the threads of a scope are whole warps, which put and wait for lines.
  bool has_lines(Scope scope) const { return scope != Scope::thread; }
  // What the first thread of the scope has, for all of them.
  template <typename Value>
  Value of_first(Scope, Value value) const {
    return value;
  }

  // Copies by all threads of a scope: into the memory of a rank, out of it, and out of it at any time before quiet().
  void give(Scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const { copy(to, from, bytes); }
  void take(Scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const { copy(to, from, bytes); }
  // The same, for what is rare.
  void take_apart(Scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const { copy(to, from, bytes); }
  void take_later(Scope, std::byte* to, const std::byte* from, std::uint64_t bytes) const { copy(to, from, bytes); }
  // Orders this thread's stores; all earlier accesses of this thread are complete.
  void fence() const { std::atomic_thread_fence(std::memory_order_acq_rel); }
  void quiet() const { std::atomic_thread_fence(std::memory_order_seq_cst); }

  // Atomic accesses, which order nothing.
  template <typename Word>
  Word read(const Word* from) const {
    return at(const_cast<Word*>(from)).load(order_of_load);
  }
  template <typename Word>
  void write(Word* to, std::type_identity_t<Word> value) const {
    at(to).store(value, order_of_store);
  }
  // The number there, after which it is one more.
  std::uint64_t next_of(std::uint64_t* number) const { return fetch_add(number, 1); }
  template <typename Word>
  Word fetch_add(Word* to, std::type_identity_t<Word> value) const {
    return at(to).fetch_add(value, order_of_change);
  }
  template <typename Word>
  void add_to(Word* to, std::type_identity_t<Word> value) const {
    fetch_add(to, value);
  }
  template <typename Word>
  Word exchange(Word* to, std::type_identity_t<Word> value) const {
    return at(to).exchange(value, order_of_change);
  }
  template <typename Word>
  Word compare_exchange(Word* to, std::type_identity_t<Word> expected, std::type_identity_t<Word> value) const {
    at(to).compare_exchange_strong(expected, value, order_of_change);
    return expected;
  }
  template <typename Word>
  Word fetch_and(Word* to, std::type_identity_t<Word> value) const {
    return at(to).fetch_and(value, order_of_change);
  }
  template <typename Word>
  Word fetch_or(Word* to, std::type_identity_t<Word> value) const {
    return at(to).fetch_or(value, order_of_change);
  }
  template <typename Word>
  Word fetch_xor(Word* to, std::type_identity_t<Word> value) const {
    return at(to).fetch_xor(value, order_of_change);
  }
  // Comes after all earlier stores of this thread, and of those that have joined it.
  void release_add(std::uint64_t* to, std::uint64_t value) const { at(to).fetch_add(value, std::memory_order_release); }

 private:
  template <typename Word>
  static std::atomic_ref<Word> at(Word* word) {
    return std::atomic_ref<Word>(*word);
  }
  static void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    struct {
      unsigned block = 0, blocks = 1, thread = 0, threads = 1;
    } alone;
    copy_body(alone, to, from, bytes);
  }
};

// One whose long puts go through memory between: the twin of CudaStagedBlock.
class HostStagedBlock : public HostHeapBlock {
 public:
  static constexpr bool is_staged = true;

  HostStagedBlock(std::byte* memory, unsigned bytes, unsigned threads = 1)
      : HostHeapBlock(0, 1, threads), bulk_(memory, bytes) {}
  bool has_bulk() const { return bulk_.piece() != 0; }
  const HostBulk& bulk() const { return bulk_; }
  void order_bulk() const {}

 private:
  HostBulk bulk_;
};

}  // namespace waywiser::one_sided
