#include "waywiser/table/pack_by_part.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "waywiser/table/block_hash.hpp"

namespace waywiser {
namespace {

using Rows = std::span<const RowsByPart::Row>;

// Where the next row of a part goes in one column, and where that ends, with padding and without.
struct Ends {
  std::byte *validity = nullptr, *values = nullptr, *data = nullptr;  // validity: nullptr if none is null
  std::byte *end_of_values = nullptr, *end_of_data = nullptr, *data_without_padding = nullptr;
  std::byte *hashed_values = nullptr, *hashed_data = nullptr;  // up to where the hash has them
  std::uint64_t row = 0;
  std::int64_t offset = 0;
};

template <typename Truth>
void append_bits(std::byte* into, std::uint64_t bit, Rows rows, Truth truth) {
  auto* const bytes = reinterpret_cast<unsigned char*>(into);
  for (const RowsByPart::Row row : rows) {
    bytes[bit >> 3] |= static_cast<unsigned char>((truth(row) ? 1u : 0u) << (bit & 7));
    ++bit;
  }
}

template <Bytes width>
void append_values(std::byte* into, const std::byte* from, Rows rows) {
  for (const RowsByPart::Row row : rows) {
    std::memcpy(into, from + static_cast<Bytes>(row) * width, width);
    into += width;
  }
}

void append_fixed(Ends& ends, const std::byte* from, Bytes width, Rows rows) {
  switch (width) {
    case 1: append_values<1>(ends.values, from, rows); break;
    case 2: append_values<2>(ends.values, from, rows); break;
    case 4: append_values<4>(ends.values, from, rows); break;
    case 8: append_values<8>(ends.values, from, rows); break;
    case 16: append_values<16>(ends.values, from, rows); break;
    default:
      for (std::size_t i = 0; width > 0 && i < rows.size(); ++i)
        std::memcpy(ends.values + i * width, from + rows[i] * width, width);
  }
  ends.values += rows.size() * width;
}

// `bytes`: all that lie at `data`. What is short is copied with what lies behind it, which the next row writes over.
template <typename Offset>
void append_binary(Ends& ends, const Offset* offsets, const std::byte* data, std::int64_t bytes, Rows rows) {
  constexpr std::int64_t at_once = 32;
  std::byte* into = ends.data;
  std::int64_t offset = ends.offset;
  for (const RowsByPart::Row row : rows) {
    const std::int64_t begin = offsets[row], length = offsets[row + 1] - begin;
    if (length <= at_once && begin + at_once <= bytes && ends.data_without_padding - into >= at_once)
      std::memcpy(into, data + begin, at_once);
    else if (length > 0)
      std::memcpy(into, data + begin, static_cast<Bytes>(length));
    into += length, offset += length;
    const auto next = static_cast<Offset>(offset);
    std::memcpy(ends.values, &next, sizeof next);
    ends.values += sizeof next;
  }
  ends.data = into, ends.offset = offset;
}

template <typename Offset>
std::int64_t bytes_of(const ColumnValues& values) {
  return values.size() == 0 ? 0 : values.offsets<Offset>()[values.size()];
}

template <typename Offset>
std::uint64_t bytes_of(const Offset* offsets, Rows rows) {
  return std::accumulate(rows.begin(), rows.end(), std::uint64_t{0}, [=](std::uint64_t all, RowsByPart::Row row) {
    return all + static_cast<std::uint64_t>(offsets[row + 1] - offsets[row]);
  });
}

// The rows count from row `first` of the column on.
void append(Ends& ends, const ColumnValues& values, std::int64_t first, Rows rows) {
  const ColumnType& type = values.type();
  if (ends.validity != nullptr)
    append_bits(ends.validity, ends.row, rows, [&](auto row) { return !values.is_null(first + row); });
  if (type.layout == ColumnLayout::boolean)
    append_bits(ends.values, ends.row, rows, [&](auto row) { return values.truth(first + row); });
  else if (type.layout == ColumnLayout::fixed)
    append_fixed(ends, values.fixed() + static_cast<Bytes>(first) * type.width, type.width, rows);
  else if (type.width == 4)
    append_binary(ends, values.offsets<std::int32_t>() + first, values.data(), bytes_of<std::int32_t>(values), rows);
  else
    append_binary(ends, values.offsets<std::int64_t>() + first, values.data(), bytes_of<std::int64_t>(values), rows);
  ends.row += rows.size();
}

// What is not written row by row is 0: bits, the first offset, padding.
Ends ends_of(const ColumnType& type, const PackedNode& node, std::byte*& at) {
  Ends ends;
  std::byte** const buffers[] = {&ends.validity, &ends.values, &ends.data};
  for (std::size_t i = 0; i < 3; ++i) {
    const Bytes bytes = node.bytes[i], padded = with_padding(bytes);
    if (i > 0 || bytes > 0) *buffers[i] = at;
    const bool is_bits = i == 0 || (i == 1 && type.layout == ColumnLayout::boolean);
    const Bytes written = is_bits ? 0 : bytes;
    std::memset(at + written, 0, padded - written);
    at += padded;
    if (i == 1) ends.end_of_values = at;
  }
  ends.end_of_data = at;
  ends.data_without_padding = ends.data + node.bytes[2];
  ends.hashed_values = ends.values, ends.hashed_data = ends.data;
  if (type.layout == ColumnLayout::binary) {
    std::memset(ends.values, 0, type.width);
    ends.values += type.width;
  }
  return ends;
}

// Adds whole lines up to `end`.
void hash_up_to(BlockHash& hash, const std::byte* block, std::byte*& hashed, const std::byte* end) {
  const Bytes bytes = static_cast<Bytes>(end - hashed) / packed_alignment * packed_alignment;
  hash.add(static_cast<Bytes>(hashed - block), hashed, bytes);
  hashed += bytes;
}

}  // namespace

bool PackingByPart::serves(const TableSchema& schema) {
  return std::ranges::all_of(schema.columns, [](const ColumnType& type) {
    return !type.is_dictionary && (type.layout == ColumnLayout::boolean || type.layout == ColumnLayout::fixed ||
                                   type.layout == ColumnLayout::binary);
  });
}

PackingByPart::PackingByPart(const TableSchema& schema, const ArrowArray& batch, const RowsByPart& rows)
    : rows_(rows), offset_(batch.offset), parts_(static_cast<std::size_t>(rows.parts())) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    columns_.emplace_back(schema.columns[i], *batch.children[i]);
    count(columns_.back());
  }
}

void PackingByPart::count(const ColumnValues& values) {
  const ColumnType& type = values.type();
  for (int part = 0; part < rows_.parts(); ++part) {
    PackedNode node{static_cast<std::uint64_t>(rows_.count(part)), 0, {}};
    std::uint64_t data = 0;
    const bool is_binary = type.layout == ColumnLayout::binary;
    for (std::size_t tile = 0; tile < rows_.tiles() && (is_binary || values.may_be_null()); ++tile) {
      const std::int64_t first = offset_ + rows_.first_of(tile);
      const Rows rows = rows_.in_tile(tile, part);
      if (values.may_be_null())
        for (const RowsByPart::Row row : rows) node.nulls += values.is_null(first + row) ? 1 : 0;
      if (is_binary)
        data += type.width == 4 ? bytes_of(values.offsets<std::int32_t>() + first, rows)
                                : bytes_of(values.offsets<std::int64_t>() + first, rows);
    }
    node.bytes = known_bytes(type, node.rows, node.nulls);
    if (is_binary) node.bytes[2] = data;
    Part& here = parts_[static_cast<std::size_t>(part)];
    for (const std::uint64_t bytes : node.bytes) here.bytes += with_padding(bytes);
    here.nodes.push_back(node);
  }
}

std::vector<std::uint64_t> PackingByPart::write(std::span<std::byte* const> blocks) const {
  const std::size_t parts = parts_.size();
  std::vector<Ends> all(columns_.size() * parts);  // column by column
  std::vector<BlockHash> hashes(parts);
  for (std::size_t part = 0; part < parts; ++part)
    if (std::byte* at = blocks[part]; at != nullptr)
      for (std::size_t i = 0; i < columns_.size(); ++i)
        all[i * parts + part] = ends_of(columns_[i].type(), parts_[part].nodes[i], at);
  const auto each = [&](auto&& step) {
    for (std::size_t i = 0; i < columns_.size(); ++i)
      for (std::size_t part = 0; part < parts; ++part)
        if (blocks[part] != nullptr) step(i, part, all[i * parts + part]);
  };
  for (std::size_t tile = 0; tile < rows_.tiles(); ++tile)
    each([&](std::size_t i, std::size_t part, Ends& ends) {
      append(ends, columns_[i], offset_ + rows_.first_of(tile), rows_.in_tile(tile, static_cast<int>(part)));
      if (columns_[i].type().layout == ColumnLayout::boolean) return;
      hash_up_to(hashes[part], blocks[part], ends.hashed_values, ends.values);
      hash_up_to(hashes[part], blocks[part], ends.hashed_data, ends.data);
    });
  each([&](std::size_t i, std::size_t part, Ends& ends) {
    const Bytes bits = with_padding(parts_[part].nodes[i].bytes[0]);
    if (std::byte* validity = ends.validity) hash_up_to(hashes[part], blocks[part], validity, validity + bits);
    hash_up_to(hashes[part], blocks[part], ends.hashed_values, ends.end_of_values);
    hash_up_to(hashes[part], blocks[part], ends.hashed_data, ends.end_of_data);
  });
  std::vector<std::uint64_t> values;
  for (const BlockHash& hash : hashes) values.push_back(hash.value());
  return values;
}

}  // namespace waywiser
