#pragma once

#include "waywiser/heap/device/transfers.hpp"
#include "waywiser/kernels/block/ll128.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::one_sided {

// Bytes in memory of the lines that hold so many.
WAYWISER_DEVICE constexpr std::uint64_t line_bytes_of(std::uint64_t bytes) {
  return (bytes + block::data_bytes_of_pair - 1) / block::data_bytes_of_pair * block::wire_bytes_of_pair;
}

// Lines that a thread has under way at once, where there are so many.
inline constexpr unsigned line_batch = 4;

// The threads of a scope with a put by lines: each has `batch` slots at a time, the same lane of each. All threads of a
// warp make the same turns.
template <unsigned batch, bool exact, Scope scope, typename Gpu>
class LinesOf {
 public:
  WAYWISER_DEVICE LinesOf(const ReachedHeap<Gpu>& ranks, std::uint64_t bytes, std::uint64_t number)
      : ranks_(ranks),
        gpu_(ranks.gpu()),
        bytes_(bytes),
        number_(number),
        slots_(line_bytes_of(bytes) / sizeof(block::Ll128Slot)) {}

  WAYWISER_DEVICE void put(block::Ll128Slot* to, const std::byte* source) const {
    each_turn([&](std::uint64_t first, std::uint64_t apart) {
      Vector16 words[batch] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (has_word(first + i * apart))
          words[i] = block::load_word<Vector16, exact>(source, bytes_, word_at(first + i * apart));
      gpu_.join(warp_of(scope));
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i) {
        const std::uint64_t slot = first + i * apart;
        gpu_.store_line(to + slot, lane_of(slot), gpu_.line_word(words[i], lane_of(slot), number_), slot < slots_);
      }
    });
  }

  WAYWISER_DEVICE void wait(std::byte* destination, const block::Ll128Slot* lines, int from) const {
    each_turn([&](std::uint64_t first, std::uint64_t apart) {
      block::Ll128Look looks[batch] = {};
      std::uint64_t late = slots_;  // a slot of this thread whose line has not come
      ranks_.wait([&] { return have_come(lines, first, apart, looks, late); },
                  [&] {
                    if (late < slots_) stop(lines + late / 8 * 8 + 7, from);
                  });
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i) {
        const std::uint64_t slot = first + i * apart;
        const Vector16 word = gpu_.word_in_line(looks[i], lane_of(slot));
        if (has_word(slot)) block::store_word<exact>(destination, bytes_, word_at(slot), word);
      }
    });
  }

 private:
  WAYWISER_DEVICE static constexpr Scope warp_of(Scope any) { return any == Scope::thread ? any : Scope::warp; }
  WAYWISER_DEVICE static unsigned lane_of(std::uint64_t slot) {
    return static_cast<unsigned>(slot % block::lanes_of_pair);
  }
  WAYWISER_DEVICE static std::uint64_t word_at(std::uint64_t slot) {
    return slot / block::lanes_of_pair * block::words_of_pair + lane_of(slot);
  }
  WAYWISER_DEVICE bool has_word(std::uint64_t slot) const {
    return lane_of(slot) < block::words_of_pair && word_at(slot) * sizeof(Vector16) < bytes_;
  }
  template <typename Function>
  WAYWISER_DEVICE void each_turn(Function f) const {
    const std::uint64_t apart = gpu_.count_of(scope), mine = gpu_.index_in(scope);
    for (std::uint64_t begin = 0; begin < slots_; begin += apart * batch) f(begin + mine, apart);
  }
  // A warp looks at its lines by one load: if a thread saw the number of a line later than others see its data, old
  // data would be taken for new.
  WAYWISER_DEVICE bool have_come(const block::Ll128Slot* lines, std::uint64_t first, std::uint64_t apart,
                                 block::Ll128Look (&looks)[batch], std::uint64_t& late) const {
    gpu_.join(warp_of(scope));
    WAYWISER_UNROLL
    for (unsigned i = 0; i < batch; ++i) {
      const std::uint64_t slot = first + i * apart;
      if (slot < slots_) looks[i] = gpu_.look_at_line(lines + slot, lane_of(slot), number_);
    }
    late = slots_;
    WAYWISER_UNROLL
    for (unsigned i = batch; i-- > 0;) {
      const std::uint64_t slot = first + i * apart;
      if (slot < slots_ && !gpu_.is_there(looks[i], lane_of(slot), number_)) late = slot;
    }
    return !gpu_.any(late < slots_);
  }
  WAYWISER_DEVICE void stop(const block::Ll128Slot* end, int from) const {
    ranks_.stop_late(&end->high, Comparison::eq, number_, gpu_.read(&end->high), from);
  }

  const ReachedHeap<Gpu>& ranks_;
  Gpu& gpu_;
  const std::uint64_t bytes_, number_, slots_;
};

// Whether the data lie in whole words of 16 bytes.
WAYWISER_DEVICE inline bool is_exact(const void* data, std::uint64_t bytes) {
  return (reinterpret_cast<std::uintptr_t>(data) | bytes) % sizeof(Vector16) == 0;
}

// Whether each thread has one slot or none, of a whole word: the quick way, beside which the others are kept apart.
template <Scope scope, typename Gpu>
WAYWISER_DEVICE bool is_slot_each(const Gpu& gpu, const void* data, std::uint64_t bytes) {
  return is_exact(data, bytes) && line_bytes_of(bytes) / sizeof(block::Ll128Slot) <= gpu.count_of(scope);
}

template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void put_many_lines(Gpu& gpu, const HeapTerms& terms, block::Ll128Slot* to,
                                                   const std::byte* source, std::uint64_t bytes, std::uint64_t number) {
  const ReachedHeap<Gpu> ranks(gpu, terms);
  if (is_exact(source, bytes))
    LinesOf<line_batch, true, scope, Gpu>(ranks, bytes, number).put(to, source);
  else
    LinesOf<1, false, scope, Gpu>(ranks, bytes, number).put(to, source);
}
template <Scope scope, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void wait_many_lines(Gpu& gpu, const HeapTerms& terms, std::byte* destination,
                                                    const block::Ll128Slot* lines, std::uint64_t bytes,
                                                    std::uint64_t number, int from) {
  const ReachedHeap<Gpu> ranks(gpu, terms);
  if (is_exact(destination, bytes))
    LinesOf<line_batch, true, scope, Gpu>(ranks, bytes, number).wait(destination, lines, from);
  else
    LinesOf<1, false, scope, Gpu>(ranks, bytes, number).wait(destination, lines, from);
}

// A put by the LL128 protocol, for more bytes than packets are good for: 120 bytes travel with the number of the put in
// a line of 128, which a warp stores at once and which arrives as a whole over NVLink. By a warp or a block of whole
// warps, as the block's has_lines() says, and to ranks that stores reach. The lines, line_bytes_of(bytes) bytes from a
// multiple of 128 on, are used as packets are: put_packets().
template <Scope scope, typename Gpu, typename T>
WAYWISER_DEVICE void put_lines(const Transfers<Gpu>& ranks, block::Ll128Slot* lines, const T* source,
                               std::uint64_t count, std::uint64_t number, int rank) {
  static_assert(scope != Scope::thread, "a warp stores a line");
  const std::uint64_t bytes = count * sizeof(T);
  block::Ll128Slot* to = ranks.place(lines, line_bytes_of(bytes) / sizeof(block::Ll128Slot), rank);
  const auto* data = reinterpret_cast<const std::byte*>(source);
  ranks.gpu().join(scope);
  if (is_slot_each<scope>(ranks.gpu(), source, bytes))
    LinesOf<1, true, scope, Gpu>(ranks, bytes, number).put(to, data);
  else
    put_many_lines<scope>(ranks.gpu(), ranks.terms(), to, data, bytes, number);
  ranks.gpu().join(scope);
}

// Waits for lines in this rank's memory and stores their elements. `from`: the rank that puts them, for the error.
template <Scope scope, typename Gpu, typename T>
WAYWISER_DEVICE void wait_lines(const Transfers<Gpu>& ranks, T* destination, const block::Ll128Slot* lines,
                                std::uint64_t count, std::uint64_t number, int from = any_rank) {
  static_assert(scope != Scope::thread, "a warp stores a line");
  const std::uint64_t bytes = count * sizeof(T);
  auto* data = reinterpret_cast<std::byte*>(destination);
  ranks.gpu().join(scope);
  if (is_slot_each<scope>(ranks.gpu(), destination, bytes))
    LinesOf<1, true, scope, Gpu>(ranks, bytes, number).wait(data, lines, from);
  else
    wait_many_lines<scope>(ranks.gpu(), ranks.terms(), data, lines, bytes, number, from);
  ranks.gpu().join(scope);
}

}  // namespace waywiser::one_sided
