#include "waywiser/table/row_hash.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "waywiser/base/error.hpp"
#include "waywiser/table/block_hash.hpp"
#include "waywiser/table/mix.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t null_hash = 0x6a09e667f3bcc908ull;

template <typename T>
T value_at(const std::byte* values, std::int64_t row) {
  T value;
  std::memcpy(&value, values + static_cast<std::size_t>(row) * sizeof(T), sizeof(T));
  return value;
}

template <typename Float>
std::uint64_t hash_of_float(Float value) {
  if (std::isnan(value)) value = std::numeric_limits<Float>::quiet_NaN();
  const double wide = static_cast<double>(value) + 0.0;  // -0 becomes 0
  return spread(std::bit_cast<std::uint64_t>(wide));
}

// NaN and zeros have two forms or more.
std::uint64_t hash_of_half(std::uint16_t bits) {
  if ((bits & 0x7fff) > 0x7c00) bits = 0x7e00;
  return spread((bits & 0x7fff) == 0 ? 0 : bits);
}

std::uint64_t hash_of_offsets(const ColumnValues& values, std::int64_t from, std::int64_t to) {
  return from == to ? spread(0) : hash_of_bytes(values.data() + from, static_cast<Bytes>(to - from));
}

// Calls `each` with a function from row to hash that fits the type.
template <typename Each>
void with_hash(const ColumnValues& values, Each each) {
  const ColumnType& type = values.type();
  const std::byte* fixed = type.layout == ColumnLayout::fixed ? values.fixed() : nullptr;
  const auto integer = [&]<typename T>(T) {
    each([fixed](std::int64_t row) { return spread(static_cast<std::uint64_t>(value_at<T>(fixed, row))); });
  };
  if (type.layout == ColumnLayout::boolean)
    each([&](std::int64_t row) { return spread(values.truth(row) ? 1 : 0); });
  else if (type.layout == ColumnLayout::binary && type.width == 4)
    each(
        [&, at = values.offsets<std::int32_t>()](std::int64_t r) { return hash_of_offsets(values, at[r], at[r + 1]); });
  else if (type.layout == ColumnLayout::binary)
    each(
        [&, at = values.offsets<std::int64_t>()](std::int64_t r) { return hash_of_offsets(values, at[r], at[r + 1]); });
  else if (type.format == "e")
    each([fixed](std::int64_t row) { return hash_of_half(value_at<std::uint16_t>(fixed, row)); });
  else if (type.format == "f")
    each([fixed](std::int64_t row) { return hash_of_float(value_at<float>(fixed, row)); });
  else if (type.format == "g")
    each([fixed](std::int64_t row) { return hash_of_float(value_at<double>(fixed, row)); });
  else if (type.width == 1)
    integer(std::uint8_t{});
  else if (type.width == 2)
    integer(std::uint16_t{});
  else if (type.width == 4)
    integer(std::uint32_t{});
  else if (type.width == 8)
    integer(std::uint64_t{});
  else
    each([fixed, width = type.width](std::int64_t row) {
      return hash_of_bytes(fixed + static_cast<Bytes>(row) * width, width);
    });
}

std::int64_t index_at(const ColumnValues& values, std::int64_t row) {
  switch (values.type().width) {
    case 1: return value_at<std::uint8_t>(values.fixed(), row);
    case 2: return value_at<std::uint16_t>(values.fixed(), row);
    case 4: return value_at<std::uint32_t>(values.fixed(), row);
    default: return value_at<std::int64_t>(values.fixed(), row);
  }
}

enum class Into { place, mix };  // a hash takes the place of what is there, or is mixed into it

// `may_be_null`: whether one of the rows is.
template <Into into, bool may_be_null, typename Hash>
[[gnu::always_inline]] inline void fill(const ColumnValues& values, Hash hash, std::int64_t first,
                                        std::span<std::uint64_t> hashes) {
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    const std::int64_t row = first + static_cast<std::int64_t>(i);
    const std::uint64_t one = may_be_null && values.is_null(row) ? null_hash : hash(row);
    hashes[i] = into == Into::mix ? mixed(hashes[i], one) : one;
  }
}

#if defined(__x86_64__)
// The compiler makes vectors of it, which multiply numbers of 64 bits faster than one after the other.
template <Into into, typename Hash>
[[gnu::target("avx2")]] void fill_wide(const ColumnValues& values, Hash hash, std::int64_t first,
                                       std::span<std::uint64_t> hashes) {
  fill<into, false>(values, hash, first, hashes);
}
#endif

template <Into into>
void write_hashes(const ColumnValues& values, std::span<const std::uint64_t> meant, std::int64_t first,
                  std::span<std::uint64_t> hashes) {
  const auto fill_by = [&](auto hash) {
    if (values.may_be_null()) return fill<into, true>(values, hash, first, hashes);
#if defined(__x86_64__)
    if (has_wide_vectors()) return fill_wide<into>(values, hash, first, hashes);
#endif
    fill<into, false>(values, hash, first, hashes);
  };
  if (!values.type().is_dictionary) return with_hash(values, fill_by);
  fill_by([&](std::int64_t row) {
    const auto index = static_cast<std::size_t>(index_at(values, row));
    if (index >= meant.size()) throw Error(ErrorKind::invalid_input, "an index is not in its dictionary");
    return meant[index];
  });
}

std::vector<std::uint64_t> hashes_of_dictionary(const ColumnValues& values) {
  const ColumnType& type = values.type();
  if (type.is_dictionary) {
    const ColumnValues within = values.child(0);
    const auto meant = hashes_of_dictionary(within);
    std::vector<std::uint64_t> hashes(static_cast<std::size_t>(within.size()));
    write_hashes<Into::place>(within, meant, 0, hashes);
    return hashes;
  }
  if (type.layout != ColumnLayout::boolean && type.layout != ColumnLayout::fixed && type.layout != ColumnLayout::binary)
    throw Error(ErrorKind::unavailable, "column " + quoted(type.name, 60) + " is no key: it is " + type.words());
  return {};
}

}  // namespace

RowHashes::RowHashes(const TableSchema& schema, const ArrowArray& batch, std::span<const int> keys)
    : offset_(batch.offset) {
  for (const int key : keys) {
    if (key < 0 || static_cast<std::size_t>(key) >= schema.columns.size())
      throw Error(ErrorKind::invalid_input, "there is no column " + std::to_string(key) + " of a table of " +
                                                std::to_string(schema.columns.size()));
    const ColumnValues values{schema.columns[static_cast<std::size_t>(key)], *batch.children[key]};
    keys_.push_back({values, hashes_of_dictionary(values)});
  }
}

void RowHashes::write(std::int64_t first, std::span<std::uint64_t> hashes) const {
  constexpr std::size_t at_once = 1024;  // they stay in a cache
  std::ranges::fill(hashes, 0);
  for (std::size_t begin = 0; begin < hashes.size(); begin += at_once) {
    const auto some = hashes.subspan(begin, std::min(at_once, hashes.size() - begin));
    for (const Key& key : keys_)
      write_hashes<Into::mix>(key.values, key.meant, offset_ + first + static_cast<std::int64_t>(begin), some);
  }
}

}  // namespace waywiser
