#pragma once

#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/collective/fused/arithmetic.hpp"
#include "waywiser/kernels/block/half.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/copy_body.hpp"

// Moves units of 8 or 16 bytes from blocks whose bytes may be strided.
namespace waywiser::program {

// f(i) for i < count; few turns are unrolled, so that all of their loads are under way together.
template <unsigned count, typename Function>
WAYWISER_DEVICE void each_turn(Function f) {
  if constexpr (count <= 4) {
    WAYWISER_UNROLL
    for (unsigned i = 0; i < count; ++i) f(i);
  } else {
    WAYWISER_ROLLED
    for (unsigned i = 0; i < count; ++i) f(i);
  }
}

template <typename Word, typename Unit, typename Layout>
WAYWISER_DEVICE Unit load_words(const Layout& view, std::uint64_t at, std::uint64_t bytes) {
  constexpr std::size_t size = sizeof(Word);
  constexpr unsigned count = sizeof(Unit) / size;
  Word words[count] = {};
  each_turn<count>([&](unsigned i) {
    if (const std::uint64_t offset = at + i * sizeof(Word); offset < bytes)
      words[i] = *reinterpret_cast<const Word*>(view.at(offset));
  });
  Unit unit;
  __builtin_memcpy(static_cast<void*>(&unit), words, sizeof unit);
  return unit;
}

template <typename Word, typename Unit, typename Layout>
WAYWISER_DEVICE void store_words(const Layout& view, std::uint64_t at, std::uint64_t bytes, const Unit& unit) {
  constexpr std::size_t size = sizeof(Word);
  constexpr unsigned count = sizeof(Unit) / size;
  Word words[count];
  __builtin_memcpy(static_cast<void*>(words), &unit, sizeof unit);
  each_turn<count>([&](unsigned i) {
    if (const std::uint64_t offset = at + i * sizeof(Word); offset < bytes)
      *reinterpret_cast<Word*>(view.at(offset)) = words[i];
  });
}

// Calls f.template operator()<Word>() with the type of `word` bytes, or of `most`.
template <unsigned most, typename Function>
WAYWISER_DEVICE auto with_word(std::uint32_t word, Function f) {
  switch (word) {
    case 16:
      if constexpr (most == 16) return f.template operator()<Vector16>();
      [[fallthrough]];
    case 8: return f.template operator()<Vector<std::uint64_t, 1>>();
    case 4: return f.template operator()<Vector<std::uint32_t, 1>>();
    case 2: return f.template operator()<Vector<std::uint16_t, 1>>();
    default: return f.template operator()<Vector<std::uint8_t, 1>>();
  }
}
// A contiguous block.
struct Plain {
  std::byte* data;

  WAYWISER_DEVICE std::byte* at(std::uint64_t byte) const { return data + byte; }
};
WAYWISER_DEVICE inline bool is_plain(const View& view, std::uint64_t bytes, std::uint32_t word) {
  return word == sizeof(Vector16) && view.run >= bytes && view.offsets == nullptr;
}
// The unit at byte `at` of a contiguous block of `bytes` that is aligned for it; zeros beyond its end.
template <typename Unit>
WAYWISER_DEVICE Unit load_unit(const Plain& block, std::uint64_t at, std::uint64_t bytes) {
  if (at + sizeof(Unit) > bytes) return load_words<Vector<std::uint8_t, 1>, Unit>(block, at, bytes);
  return *reinterpret_cast<const Unit*>(block.at(at));
}
template <typename Unit>
WAYWISER_DEVICE void store_unit(const Plain& block, std::uint64_t at, std::uint64_t bytes, const Unit& unit) {
  if (at + sizeof(Unit) > bytes) return store_words<Vector<std::uint8_t, 1>>(block, at, bytes, unit);
  *reinterpret_cast<Unit*>(block.at(at)) = unit;
}

// Calls f.template operator()<Word>(layout) with the type of `word` bytes and the simplest layout of a block of
// `bytes`, which takes the fewest registers.
template <typename Function>
WAYWISER_DEVICE void with_layout(const View& view, std::uint64_t bytes, std::uint32_t word, Function f) {
  if (is_plain(view, bytes, word)) return f.template operator()<Vector16>(Plain{view.data});
  with_word<16>(word, [&]<typename Word>() { f.template operator()<Word>(view); });
}

// For strided words, and for the last unit, which is moved byte by byte. Not inlined: kernels compile faster.
template <typename Unit>
WAYWISER_DEVICE WAYWISER_APART Unit load_apart(const View& view, std::uint64_t at, std::uint64_t bytes,
                                               std::uint32_t word) {
  return with_word<8>(at + sizeof(Unit) > bytes ? 1 : word,
                      [&]<typename Word>() { return load_words<Word, Unit>(view, at, bytes); });
}
template <typename Unit>
WAYWISER_DEVICE WAYWISER_APART void store_apart(const View& view, std::uint64_t at, std::uint64_t bytes,
                                                std::uint32_t word, const Unit& unit) {
  with_word<8>(at + sizeof(Unit) > bytes ? 1 : word,
               [&]<typename Word>() { store_words<Word>(view, at, bytes, unit); });
}

// The unit at byte `at` of a block of `bytes`; zeros beyond its end.
template <typename Unit>
WAYWISER_DEVICE Unit load_unit(const View& view, std::uint64_t at, std::uint64_t bytes, std::uint32_t word) {
  if (word < sizeof(Unit) || at + sizeof(Unit) > bytes) return load_apart<Unit>(view, at, bytes, word);
  return *reinterpret_cast<const Unit*>(view.at(at));
}
template <typename Unit>
WAYWISER_DEVICE void store_unit(const View& view, std::uint64_t at, std::uint64_t bytes, std::uint32_t word,
                                const Unit& unit) {
  if (word < sizeof(Unit) || at + sizeof(Unit) > bytes) return store_apart(view, at, bytes, word, unit);
  *reinterpret_cast<Unit*>(view.at(at)) = unit;
}

// The same 16 bytes in words of one type, which the caller has chosen for all units.
template <typename Word, typename Layout>
WAYWISER_DEVICE Vector16 load_vector(const Layout& view, std::uint64_t at, std::uint64_t bytes) {
  if (at + sizeof(Vector16) > bytes) return load_words<Vector<std::uint8_t, 1>, Vector16>(view, at, bytes);
  return load_words<Word, Vector16>(view, at, bytes);
}
template <typename Word, typename Layout>
WAYWISER_DEVICE void store_vector(const Layout& view, std::uint64_t at, std::uint64_t bytes, const Vector16& unit) {
  if (at + sizeof(Vector16) > bytes) return store_words<Vector<std::uint8_t, 1>>(view, at, bytes, unit);
  store_words<Word>(view, at, bytes, unit);
}

inline constexpr unsigned rows_batch = copy_batch / 2;  // their places take registers too

// Moves `bytes` from byte `begin` of a block on, by all threads of a block of threads: neighbouring threads move
// neighbouring words, and each has several loads under way before its first store. The layouts are copies, so that they
// stay in registers. Every thread calls `before_stores` once, when its first loads are under way.
template <typename Word, unsigned batch, typename Layout, typename Gpu, typename Function>
WAYWISER_DEVICE void move_words(Gpu& gpu, const Layout from, const Layout to, std::uint64_t begin, std::uint64_t bytes,
                                Function before_stores) {
  gpu.each_thread([&](unsigned thread) {
    bool stores = false;
    const std::uint64_t step = std::uint64_t{gpu.threads()} * sizeof(Word), end = bytes / sizeof(Word) * sizeof(Word);
    WAYWISER_ROLLED
    for (std::uint64_t first = thread * sizeof(Word); first < end || !stores; first += batch * step) {
      Word words[batch] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (const std::uint64_t at = first + i * step; at < end)
          words[i] = *reinterpret_cast<const Word*>(from.at(begin + at));
      if (!stores) before_stores();
      stores = true;
      WAYWISER_UNROLL
      for (unsigned i = 0; i < batch; ++i)
        if (const std::uint64_t at = first + i * step; at < end) *reinterpret_cast<Word*>(to.at(begin + at)) = words[i];
    }
    WAYWISER_ROLLED
    for (std::uint64_t at = end + thread; at < bytes; at += gpu.threads()) *to.at(begin + at) = *from.at(begin + at);
  });
}

template <typename Word, unsigned batch, typename Layout, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void move_words_apart(Gpu& gpu, const Layout from, const Layout to, std::uint64_t begin,
                                                     std::uint64_t bytes) {
  move_words<Word, batch>(gpu, from, to, begin, bytes, [] {});
}

// `word`: bytes that can be moved at once at any place.
template <typename Gpu>
WAYWISER_DEVICE void move_bytes(Gpu& gpu, const View& from, const View& to, std::uint64_t begin, std::uint64_t bytes,
                                std::uint32_t word) {
  if (is_plain(from, begin + bytes, word) && is_plain(to, begin + bytes, word))
    return move_words_apart<Vector16, copy_batch>(gpu, Plain{from.data}, Plain{to.data}, begin, bytes);
  with_word<16>(word, [&]<typename Word>() { move_words_apart<Word, rows_batch>(gpu, from, to, begin, bytes); });
}

template <typename Gpu, typename T, typename Unit>
WAYWISER_DEVICE Unit reduced_as(ReduceOp op, const Unit& mine, const Unit& theirs) {
  Unit result = mine;
  fused::with_combination<Gpu>(op, [&](auto combine) {
    fused::Accumulator<Gpu, T, Unit> sum(mine);
    sum.add(combine, theirs);
    result = sum.result(ReduceOp::sum, 1);
  });
  return result;
}

// As on the host: of one type, element by element; avg adds.
template <typename Gpu, typename Unit>
WAYWISER_DEVICE WAYWISER_APART Unit reduced(const Instruction& each, const Unit& mine, const Unit& theirs) {
  const ReduceOp op = each.op;
  switch (each.type) {
    case DataType::float64: return reduced_as<Gpu, double>(op, mine, theirs);
    case DataType::float32: return reduced_as<Gpu, float>(op, mine, theirs);
    case DataType::float16: return reduced_as<Gpu, Float16>(op, mine, theirs);
    case DataType::bfloat16: return reduced_as<Gpu, Bfloat16>(op, mine, theirs);
    case DataType::int8: return reduced_as<Gpu, std::int8_t>(op, mine, theirs);
    case DataType::int16: return reduced_as<Gpu, std::int16_t>(op, mine, theirs);
    case DataType::int32: return reduced_as<Gpu, std::int32_t>(op, mine, theirs);
    case DataType::int64: return reduced_as<Gpu, std::int64_t>(op, mine, theirs);
    case DataType::uint8: return reduced_as<Gpu, std::uint8_t>(op, mine, theirs);
    default: break;
  }
  const Unit both[] = {mine, theirs};
  return fused::rare_reduced<Gpu>(each.type, op, 2, both, 1);
}

}  // namespace waywiser::program
