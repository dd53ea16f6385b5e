#include "waywiser/table/tile_sort.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "waywiser/table/block_hash.hpp"
#include "waywiser/table/row_hash.hpp"

namespace waywiser {
namespace {

constexpr std::size_t chains = 4;
constexpr int few_parts = 7;

#if defined(__x86_64__)
// For each set of eight rows, a bit for each, which they are.
constexpr auto rows_of_sets = [] {
  std::array<std::array<std::uint8_t, 8>, 256> sets{};
  for (unsigned set = 0; set < 256; ++set)
    for (std::uint8_t row = 0, count = 0; row < 8; ++row)
      if ((set >> row & 1) != 0) sets[set][count++] = row;
  return sets;
}();

// Those of `set`, as rows from `first` on; where the next ones go. Writes eight places.
[[gnu::target("avx2,popcnt")]] std::uint16_t* append_set(std::uint16_t* rows, unsigned set, std::size_t first) {
  const __m128i places = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows_of_sets[set].data())));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rows), _mm_add_epi16(places, _mm_set1_epi16(static_cast<short>(first))));
  return rows + std::popcount(set);
}

// Behind each other those of `count` rows whose part is `part`; how many they are. Writes up to eight places more.
// `parts`: of a multiple of 16 rows; what lies behind `count` is of no part.
[[gnu::target("avx2,popcnt")]] std::size_t rows_of_part(const std::uint8_t* parts, std::size_t count, int part,
                                                        std::uint16_t* rows) {
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(part));
  std::uint16_t* end = rows;
  for (std::size_t first = 0; first < count; first += 16) {
    const __m128i some = _mm_loadu_si128(reinterpret_cast<const __m128i*>(parts + first));
    const auto set = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(some, wanted)));
    end = append_set(end, set & 0xff, first);
    end = append_set(end, set >> 8, first + 8);
  }
  return static_cast<std::size_t>(end - rows);
}
#else
std::size_t rows_of_part(const std::uint8_t*, std::size_t, int, std::uint16_t*) { return 0; }
#endif

}  // namespace

TileSort::TileSort(int parts)
    : parts_(parts),
      few_(parts <= few_parts && has_wide_vectors()),
      places_(chains * static_cast<std::size_t>(parts)) {}

void TileSort::operator()(std::span<const std::uint64_t> hashes, std::uint16_t* rows, std::span<std::uint32_t> ends) {
  const std::size_t count = hashes.size();
  if (!few_) {
    if (part_of_.size() < count) part_of_.resize(count);
    for (std::size_t i = 0; i < count; ++i) part_of_[i] = static_cast<std::uint32_t>(part_of_hash(hashes[i], parts_));
    return count_and_place(count, rows, ends);
  }
  if (small_parts_.size() < count + 15) small_parts_.resize(count + 15);
  for (std::size_t i = 0; i < count; ++i) small_parts_[i] = static_cast<std::uint8_t>(part_of_hash(hashes[i], parts_));
  std::fill_n(small_parts_.begin() + static_cast<std::ptrdiff_t>(count), 15, std::uint8_t{0xff});
  std::size_t end = 0;
  for (int part = 0; part < parts_; ++part) {
    end += rows_of_part(small_parts_.data(), count, part, rows + end);
    ends[static_cast<std::size_t>(part)] = static_cast<std::uint32_t>(end);
  }
}

// Each quarter of the rows has counters of its own: a counter waits for itself, not for those of other quarters.
void TileSort::count_and_place(std::size_t count, std::uint16_t* rows, std::span<std::uint32_t> ends) {
  const auto parts = static_cast<std::size_t>(parts_);
  const std::size_t quarter = count / chains;
  const std::uint32_t* const part_of = part_of_.data();
  std::uint32_t* places[chains];
  for (std::size_t chain = 0; chain < chains; ++chain) places[chain] = places_.data() + chain * parts;
  std::ranges::fill(places_, 0);
  for (std::size_t i = 0; i < quarter; ++i)
    for (std::size_t chain = 0; chain < chains; ++chain) ++places[chain][part_of[chain * quarter + i]];
  for (std::size_t i = chains * quarter; i < count; ++i) ++places[chains - 1][part_of[i]];
  std::uint32_t end = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::uint32_t* place : places) end += std::exchange(place[part], end);
    ends[part] = end;
  }
  for (std::size_t i = 0; i < quarter; ++i)
    for (std::size_t chain = 0; chain < chains; ++chain) {
      const std::size_t row = chain * quarter + i;
      rows[places[chain][part_of[row]]++] = static_cast<std::uint16_t>(row);
    }
  for (std::size_t i = chains * quarter; i < count; ++i)
    rows[places[chains - 1][part_of[i]]++] = static_cast<std::uint16_t>(i);
}

}  // namespace waywiser
