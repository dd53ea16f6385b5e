#include "waywiser/table/pack.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/table/block_hash.hpp"

namespace waywiser {
namespace {

constexpr Bytes bytes_of_bits(std::uint64_t bits) { return (bits + 7) / 8; }

template <typename Truth>
void write_bits(std::byte* into, std::int64_t count, Truth truth) {
  std::memset(into, 0, bytes_of_bits(static_cast<std::uint64_t>(count)));
  for (std::int64_t i = 0; i < count; ++i)
    if (truth(i)) reinterpret_cast<unsigned char*>(into)[i >> 3] |= static_cast<unsigned char>(1 << (i & 7));
}

template <Bytes width>
void gather_fixed(std::byte* into, const std::byte* from, const RowSet& rows) {
  const std::int64_t *list = rows.list(), *end = list + rows.size();
  for (; list != end; ++list, into += width) std::memcpy(into, from + static_cast<Bytes>(*list) * width, width);
}

void copy_fixed(std::byte* into, const std::byte* from, Bytes width, const RowSet& rows) {
  if (rows.size() == 0 || width == 0) return;
  if (width == 1) {
    gather_fixed<1>(into, from, rows);
  } else if (width == 2) {
    gather_fixed<2>(into, from, rows);
  } else if (width == 4) {
    gather_fixed<4>(into, from, rows);
  } else if (width == 8) {
    gather_fixed<8>(into, from, rows);
  } else if (width == 16) {
    gather_fixed<16>(into, from, rows);
  } else {
    for (std::int64_t i = 0; i < rows.size(); ++i)
      std::memcpy(into + static_cast<Bytes>(i) * width, from + static_cast<Bytes>(rows[i]) * width, width);
  }
}

// The offsets of the chosen values when they lie one behind the other.
template <typename Offset>
void write_offsets(std::byte* into, const Offset* offsets, const RowSet& rows) {
  Offset at = 0;
  std::memcpy(into, &at, sizeof at);
  for (std::int64_t i = 0; i < rows.size(); ++i) {
    at = static_cast<Offset>(at + offsets[rows[i] + 1] - offsets[rows[i]]);
    std::memcpy(into + (static_cast<Bytes>(i) + 1) * sizeof at, &at, sizeof at);
  }
}

// The number of what the offsets count.
template <typename Offset>
std::int64_t counted(const ColumnValues& values, const RowSet& rows) {
  const Offset* offsets = values.offsets<Offset>();
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) all += offsets[rows[i] + 1] - offsets[rows[i]];
  if (all > std::numeric_limits<Offset>::max())
    throw Error(ErrorKind::unavailable, "column " + quoted(values.type().name, 60) +
                                            ": too many bytes for offsets of 32 bits: use its large type");
  return all;
}

std::uint64_t index_of(const std::byte* from, Bytes width, std::int64_t row) {
  std::uint64_t index = 0;  // a little endian's first bytes
  std::memcpy(&index, from + static_cast<Bytes>(row) * width, width);
  return index;
}

}  // namespace

std::array<std::uint64_t, 3> known_bytes(const ColumnType& type, std::uint64_t rows, std::uint64_t nulls) {
  const Bytes validity = nulls == 0 || type.layout == ColumnLayout::null ? 0 : bytes_of_bits(rows);
  switch (type.layout) {
    case ColumnLayout::boolean: return {validity, bytes_of_bits(rows), 0};
    case ColumnLayout::fixed: return {validity, rows * type.width, 0};
    case ColumnLayout::binary:
    case ColumnLayout::list: return {validity, (rows + 1) * type.width, 0};
    default: return {validity, 0, 0};
  }
}

Packing::Packing(const TableSchema& schema, const ArrowArray& batch, const RowSet& rows) {
  nodes_.reserve(schema.nodes());
  const RowSet& here = keep(batch.offset == 0 ? rows : rows.moved(batch.offset));
  for (std::size_t i = 0; i < schema.columns.size(); ++i) add({schema.columns[i], *batch.children[i]}, here);
}

void Packing::write(std::byte* into, BlockHash* hash) const {
  for (const Part& part : parts_) {
    std::byte* const at = into + part.at;
    Bytes done = 0;
    if (part.run == nullptr) {
      part.fill(at);
    } else {
      if (hash != nullptr) hash->copy(part.at, at, part.run, done = part.bytes / packed_alignment * packed_alignment);
      std::memcpy(at + done, part.run + done, part.bytes - done);
    }
    const Bytes padded = with_padding(part.bytes);
    std::memset(at + part.bytes, 0, padded - part.bytes);
    if (hash != nullptr) hash->add(part.at + done, at + done, padded - done);
  }
}

void Packing::add_buffer(std::size_t number, Bytes bytes, Fill fill) {
  nodes_.back().bytes[number] = bytes;
  if (bytes == 0) return;
  parts_.push_back({bytes_, bytes, nullptr, std::move(fill)});
  bytes_ += with_padding(bytes);
}

void Packing::add_run(std::size_t number, Bytes bytes, const std::byte* from) {
  add_buffer(number, bytes, nullptr);
  if (bytes > 0) parts_.back().run = from;
}

void Packing::add(const ColumnValues& values, const RowSet& rows) {
  nodes_.push_back({static_cast<std::uint64_t>(rows.size()), 0, {}});
  add_validity(values, rows);
  const ColumnType& type = values.type();
  if (type.is_dictionary) return add_dictionary(values, rows);
  switch (type.layout) {
    case ColumnLayout::null: return;
    case ColumnLayout::boolean: return add_booleans(values, rows);
    case ColumnLayout::fixed: return add_fixed(values, rows);
    case ColumnLayout::binary:
      return type.width == 4 ? add_binary<std::int32_t>(values, rows) : add_binary<std::int64_t>(values, rows);
    case ColumnLayout::list:
      return type.width == 4 ? add_list<std::int32_t>(values, rows) : add_list<std::int64_t>(values, rows);
    case ColumnLayout::structure: {
      const RowSet& within = keep(rows.moved(values.offset()));
      for (std::size_t i = 0; i < type.children.size(); ++i) add(values.child(i), within);
      return;
    }
    case ColumnLayout::fixed_list: {
      std::vector<std::int64_t> within;
      within.reserve(static_cast<std::size_t>(rows.size() * type.elements));
      for (std::int64_t i = 0; i < rows.size(); ++i)
        for (std::int64_t j = 0; j < type.elements; ++j)
          within.push_back((values.offset() + rows[i]) * type.elements + j);
      return add(values.child(0), keep(RowSet(std::move(within))));
    }
  }
}

void Packing::add_validity(const ColumnValues& values, const RowSet& rows) {
  if (!values.may_be_null()) return;
  std::uint64_t nulls = 0;
  for (std::int64_t i = 0; i < rows.size(); ++i) nulls += values.is_null(rows[i]) ? 1 : 0;
  nodes_.back().nulls = nulls;
  const Bytes bytes = known_bytes(values.type(), static_cast<std::uint64_t>(rows.size()), nulls)[0];
  add_buffer(0, bytes, [values, &rows](std::byte* into) {
    write_bits(into, rows.size(), [&](std::int64_t i) { return !values.is_null(rows[i]); });
  });
}

void Packing::add_booleans(const ColumnValues& values, const RowSet& rows) {
  add_buffer(1, bytes_of_bits(static_cast<std::uint64_t>(rows.size())), [values, &rows](std::byte* into) {
    write_bits(into, rows.size(), [&](std::int64_t i) { return values.truth(rows[i]); });
  });
}

void Packing::add_fixed(const ColumnValues& values, const RowSet& rows) {
  const Bytes width = values.type().width, bytes = static_cast<Bytes>(rows.size()) * width;
  if (rows.is_run() && bytes > 0) return add_run(1, bytes, values.fixed() + static_cast<Bytes>(rows[0]) * width);
  add_buffer(1, bytes, [values, &rows, width](std::byte* into) { copy_fixed(into, values.fixed(), width, rows); });
}

template <typename Offset>
void Packing::add_binary(const ColumnValues& values, const RowSet& rows) {
  const auto data = static_cast<Bytes>(counted<Offset>(values, rows));
  const Offset* offsets = values.offsets<Offset>();
  add_buffer(1, (static_cast<Bytes>(rows.size()) + 1) * sizeof(Offset),
             [offsets, &rows](std::byte* into) { write_offsets(into, offsets, rows); });
  if (rows.is_run() && data > 0) return add_run(2, data, values.data() + offsets[rows[0]]);
  add_buffer(2, data, [values, offsets, &rows](std::byte* into) {
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      const auto length = static_cast<Bytes>(offsets[rows[i] + 1] - offsets[rows[i]]);
      if (length > 0) std::memcpy(into, values.data() + offsets[rows[i]], length);
      into += length;
    }
  });
}

template <typename Offset>
void Packing::add_list(const ColumnValues& values, const RowSet& rows) {
  const std::int64_t items = counted<Offset>(values, rows);
  const Offset* offsets = values.offsets<Offset>();
  add_buffer(1, (static_cast<Bytes>(rows.size()) + 1) * sizeof(Offset),
             [offsets, &rows](std::byte* into) { write_offsets(into, offsets, rows); });
  if (rows.is_run() && rows.size() > 0) return add(values.child(0), keep(RowSet(offsets[rows[0]], items)));
  std::vector<std::int64_t> within;
  within.reserve(static_cast<std::size_t>(items));
  for (std::int64_t i = 0; i < rows.size(); ++i)
    for (Offset at = offsets[rows[i]]; at < offsets[rows[i] + 1]; ++at) within.push_back(at);
  add(values.child(0), keep(RowSet(std::move(within))));
}

// Only those entries go along that the rows use, in the order of the dictionary.
void Packing::add_dictionary(const ColumnValues& values, const RowSet& rows) {
  const ColumnValues dictionary = values.child(0);
  const Bytes width = values.type().width;
  const std::byte* indices = values.fixed();
  std::vector<std::uint64_t> number(static_cast<std::size_t>(dictionary.size()));
  const auto is_value = [values](std::int64_t row) { return !values.may_be_null() || !values.is_null(row); };
  for (std::int64_t i = 0; i < rows.size(); ++i)
    if (is_value(rows[i])) number.at(index_of(indices, width, rows[i])) = 1;
  std::vector<std::int64_t> used;
  for (std::size_t i = 0; i < number.size(); ++i)
    if (number[i] != 0) number[i] = used.size(), used.push_back(static_cast<std::int64_t>(i));
  add_buffer(1, static_cast<Bytes>(rows.size()) * width, [=, &rows, number = std::move(number)](std::byte* into) {
    for (std::int64_t i = 0; i < rows.size(); ++i) {
      const std::uint64_t index = is_value(rows[i]) ? number[index_of(indices, width, rows[i])] : 0;
      std::memcpy(into + static_cast<Bytes>(i) * width, &index, width);
    }
  });
  add(dictionary, keep(RowSet(std::move(used))));
}

}  // namespace waywiser
