#include "waywiser/table/row_hash.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "waywiser/base/error.hpp"
#include "waywiser/table/mix.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t null_hash = 0x6a09e667f3bcc908ull;
using Hashes = std::vector<std::uint64_t>;

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

Hashes hashes_of(const ColumnValues& values, std::int64_t first, std::int64_t rows) {
  const ColumnType& type = values.type();
  Hashes hashes(static_cast<std::size_t>(rows));
  const auto fill = [&](auto hash) {
    for (std::int64_t i = 0; i < rows; ++i)
      hashes[static_cast<std::size_t>(i)] =
          values.may_be_null() && values.is_null(first + i) ? null_hash : hash(first + i);
  };
  if (type.is_dictionary) {
    const ColumnValues dictionary = values.child(0);
    const Hashes meant = hashes_of(dictionary, 0, dictionary.size());
    fill([&](std::int64_t row) { return meant.at(static_cast<std::size_t>(index_at(values, row))); });
  } else if (type.layout == ColumnLayout::boolean || type.layout == ColumnLayout::fixed ||
             type.layout == ColumnLayout::binary) {
    with_hash(values, fill);
  } else {
    throw Error(ErrorKind::unavailable, "column " + quoted(type.name, 60) + " is no key: it is " + type.words());
  }
  return hashes;
}

}  // namespace

std::vector<std::uint64_t> hash_rows(const TableSchema& schema, const ArrowArray& batch, std::span<const int> keys) {
  Hashes all(static_cast<std::size_t>(batch.length));
  for (const int key : keys) {
    const auto place = static_cast<std::size_t>(key);
    const Hashes one = hashes_of({schema.columns.at(place), *batch.children[key]}, batch.offset, batch.length);
    for (std::size_t row = 0; row < all.size(); ++row) all[row] = mixed(all[row], one[row]);
  }
  return all;
}

}  // namespace waywiser
