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

template <typename Word, typename Unit>
WAYWISER_DEVICE Unit load_words(const View& view, std::uint64_t at, std::uint64_t bytes) {
  constexpr unsigned count = sizeof(Unit) / sizeof(Word);
  Word words[count] = {};
  each_turn<count>([&](unsigned i) {
    if (const std::uint64_t offset = at + i * sizeof(Word); offset < bytes)
      words[i] = *reinterpret_cast<const Word*>(view.at(offset));
  });
  Unit unit;
  __builtin_memcpy(static_cast<void*>(&unit), words, sizeof unit);
  return unit;
}

template <typename Word, typename Unit>
WAYWISER_DEVICE void store_words(const View& view, std::uint64_t at, std::uint64_t bytes, const Unit& unit) {
  constexpr unsigned count = sizeof(Unit) / sizeof(Word);
  Word words[count];
  __builtin_memcpy(static_cast<void*>(words), &unit, sizeof unit);
  each_turn<count>([&](unsigned i) {
    if (const std::uint64_t offset = at + i * sizeof(Word); offset < bytes)
      *reinterpret_cast<Word*>(view.at(offset)) = words[i];
  });
}

// Calls f.template operator()<Word>() with the widest type that can be moved, of `word` bytes and at most eight.
template <typename Unit, typename Function>
WAYWISER_DEVICE auto with_word(std::uint32_t word, Function f) {
  switch (word) {
    case 16:
    case 8: return f.template operator()<Vector<std::uint64_t, 1>>();
    case 4: return f.template operator()<Vector<std::uint32_t, 1>>();
    case 2: return f.template operator()<Vector<std::uint16_t, 1>>();
    default: return f.template operator()<Vector<std::uint8_t, 1>>();
  }
}

// For strided words, and for the last unit, which is moved byte by byte. Not inlined: kernels compile faster.
template <typename Unit>
WAYWISER_DEVICE WAYWISER_APART Unit load_apart(const View& view, std::uint64_t at, std::uint64_t bytes,
                                               std::uint32_t word) {
  return with_word<Unit>(at + sizeof(Unit) > bytes ? 1 : word,
                         [&]<typename Word>() { return load_words<Word, Unit>(view, at, bytes); });
}
template <typename Unit>
WAYWISER_DEVICE WAYWISER_APART void store_apart(const View& view, std::uint64_t at, std::uint64_t bytes,
                                                std::uint32_t word, const Unit& unit) {
  with_word<Unit>(at + sizeof(Unit) > bytes ? 1 : word,
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

// Moves `bytes` from byte `begin` of a block on, by all threads of a block of threads: neighbouring threads move
// neighbouring words, and each has several loads under way before its first store. The views are copies, so that they
// stay in registers.
template <typename Word, typename Gpu>
WAYWISER_DEVICE WAYWISER_APART void move_words(Gpu& gpu, const View from, const View to, std::uint64_t begin,
                                               std::uint64_t bytes) {
  gpu.each_thread([&](unsigned thread) {
    const std::uint64_t step = std::uint64_t{gpu.threads()} * sizeof(Word), end = bytes / sizeof(Word) * sizeof(Word);
    WAYWISER_ROLLED
    for (std::uint64_t first = thread * sizeof(Word); first < end; first += copy_batch * step) {
      Word words[copy_batch] = {};
      WAYWISER_UNROLL
      for (unsigned i = 0; i < copy_batch; ++i)
        if (const std::uint64_t at = first + i * step; at < end)
          words[i] = *reinterpret_cast<const Word*>(from.at(begin + at));
      WAYWISER_UNROLL
      for (unsigned i = 0; i < copy_batch; ++i)
        if (const std::uint64_t at = first + i * step; at < end) *reinterpret_cast<Word*>(to.at(begin + at)) = words[i];
    }
    WAYWISER_ROLLED
    for (std::uint64_t at = end + thread; at < bytes; at += gpu.threads()) *to.at(begin + at) = *from.at(begin + at);
  });
}

// `word`: bytes that can be moved at once at any place.
template <typename Gpu>
WAYWISER_DEVICE void move_bytes(Gpu& gpu, const View& from, const View& to, std::uint64_t begin, std::uint64_t bytes,
                                std::uint32_t word) {
  switch (word) {
    case 16: return move_words<Vector16>(gpu, from, to, begin, bytes);
    case 8: return move_words<Vector<std::uint64_t, 1>>(gpu, from, to, begin, bytes);
    case 4: return move_words<Vector<std::uint32_t, 1>>(gpu, from, to, begin, bytes);
    case 2: return move_words<Vector<std::uint16_t, 1>>(gpu, from, to, begin, bytes);
    default: return move_words<Vector<std::uint8_t, 1>>(gpu, from, to, begin, bytes);
  }
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
