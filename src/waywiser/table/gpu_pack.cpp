#include "waywiser/table/gpu_pack.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/device/stream.hpp"

namespace waywiser {
namespace {

[[noreturn]] void refuse_cut(const ColumnValues& values, const char* why) {
  throw Error(ErrorKind::unavailable, "column " + quoted(values.type().name, 60) + " of a table on a GPU: " + why);
}

bool can_be_cut_column(const ColumnType& type) {
  return type.layout != ColumnLayout::binary && type.layout != ColumnLayout::list &&
         (type.is_dictionary || std::ranges::all_of(type.children, can_be_cut_column));
}

}  // namespace

bool can_be_cut(const TableSchema& schema) { return std::ranges::all_of(schema.columns, can_be_cut_column); }

GpuPacking::GpuPacking(const TableSchema& schema, const ArrowArray& batch, std::int64_t first, std::int64_t count,
                       Stream& stream, Seconds timeout)
    : stream_(stream), timeout_(timeout) {
  nodes_.reserve(schema.nodes());
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    add({schema.columns[i], *batch.children[i]}, batch.offset + first, count);
}

void GpuPacking::write(Region into) const {
  for (const Copy& each : copies_) stream_.copy(into.slice(each.at, each.from.bytes), each.from);
}

void GpuPacking::add(const ColumnValues& values, std::int64_t first, std::int64_t count) {
  const ColumnType& type = values.type();
  const bool is_null = type.layout == ColumnLayout::null;
  nodes_.push_back({static_cast<std::uint64_t>(count), is_null ? static_cast<std::uint64_t>(count) : 0, {}});
  if (!is_null && values.may_be_null()) {
    nodes_.back().nulls = unknown_nulls;
    add_bits(0, values, first, count);
  }
  if (type.layout == ColumnLayout::boolean) {
    add_bits(1, values, first, count);
  } else if (type.layout == ColumnLayout::fixed) {
    const auto width = static_cast<std::int64_t>(type.width);
    add_copy(1, values.fixed() + first * width, static_cast<Bytes>(count * width));
    if (type.is_dictionary) add(values.child(0), 0, values.child(0).size());
  } else if (type.layout == ColumnLayout::binary) {
    add_copy(2, values.data(), static_cast<Bytes>(add_offsets(values, first, count)));
  } else if (type.layout == ColumnLayout::list) {
    add(values.child(0), 0, add_offsets(values, first, count));
  } else if (type.layout == ColumnLayout::fixed_list) {
    add(values.child(0), (values.offset() + first) * type.elements, count * type.elements);
  } else {
    for (std::size_t i = 0; i < type.children.size(); ++i) add(values.child(i), values.offset() + first, count);
  }
}

void GpuPacking::add_bits(std::size_t number, const ColumnValues& values, std::int64_t first, std::int64_t count) {
  const std::int64_t bit = values.offset() + first;
  if (bit % 8 != 0) refuse_cut(values, "its bits do not begin at a byte");
  add_copy(number, values.bits(number) + bit / 8, static_cast<Bytes>((count + 7) / 8));
}

// What the offsets count.
std::int64_t GpuPacking::add_offsets(const ColumnValues& values, std::int64_t first, std::int64_t count) {
  const Bytes width = values.type().width;
  const std::byte* begin = values.fixed() + static_cast<Bytes>(first) * width;
  if (offset_at(begin, width) != 0) refuse_cut(values, "its offsets do not begin at 0");
  add_copy(1, begin, (static_cast<Bytes>(count) + 1) * width);
  return offset_at(begin + static_cast<Bytes>(count) * width, width);
}

void GpuPacking::add_copy(std::size_t number, const std::byte* data, Bytes bytes) {
  nodes_.back().bytes[number] = bytes;
  if (bytes == 0) return;
  copies_.push_back({bytes_, {data, bytes, stream_.place()}});
  bytes_ += with_padding(bytes);
}

std::int64_t GpuPacking::offset_at(const std::byte* data, Bytes width) const {
  std::int64_t offset = 0;  // a little endian's first bytes
  stream_.copy(Region{reinterpret_cast<std::byte*>(&offset), width, host(0)},
               ConstRegion{data, width, stream_.place()});
  stream_.synchronize(Deadline::in(timeout_));
  return offset;
}

}  // namespace waywiser
