#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/table/column_values.hpp"
#include "waywiser/table/row_set.hpp"

namespace waywiser {

class BlockHash;

// What lies in a packed piece of a table, for each column and each column in one, in the order of the schema: the
// buffers of Arrow's columnar format, each from a multiple of 64 bytes.
struct PackedNode {
  std::uint64_t rows = 0, nulls = 0;
  std::array<std::uint64_t, 3> bytes{};  // of each buffer: validity, values or offsets, data
};
inline constexpr std::uint64_t unknown_nulls = ~std::uint64_t{0};  // some, or none: the bits tell
inline constexpr Bytes packed_alignment = 64;

// The buffers that a node of `rows` rows has, in bytes; those that the schema alone does not tell are 0.
std::array<std::uint64_t, 3> known_bytes(const ColumnType& type, std::uint64_t rows, std::uint64_t nulls);
constexpr Bytes with_padding(Bytes bytes) noexcept { return (bytes + packed_alignment - 1) & ~(packed_alignment - 1); }

// Chosen rows of a batch, on the way into one block: first their sizes, then the bytes.
class Packing {
 public:
  // `rows` counts from the batch's first row. The batch must outlive it. Throws unavailable for more than 2^31 - 1
  // bytes of a column whose offsets have 32 bits.
  Packing(const TableSchema& schema, const ArrowArray& batch, const RowSet& rows);

  Bytes bytes() const noexcept { return bytes_; }
  const std::vector<PackedNode>& nodes() const noexcept { return nodes_; }
  // Writes bytes() bytes, and adds them to `hash` if there is one. `into` is at a multiple of 64.
  void write(std::byte* into, BlockHash* hash = nullptr) const;

 private:
  using Fill = std::function<void(std::byte*)>;

  void add(const ColumnValues& values, const RowSet& rows);
  void add_validity(const ColumnValues& values, const RowSet& rows);
  void add_booleans(const ColumnValues& values, const RowSet& rows);
  void add_fixed(const ColumnValues& values, const RowSet& rows);
  template <typename Offset>
  void add_binary(const ColumnValues& values, const RowSet& rows);
  template <typename Offset>
  void add_list(const ColumnValues& values, const RowSet& rows);
  void add_dictionary(const ColumnValues& values, const RowSet& rows);
  void add_buffer(std::size_t number, Bytes bytes, Fill fill);
  void add_run(std::size_t number, Bytes bytes, const std::byte* from);
  const RowSet& keep(RowSet rows) { return kept_.emplace_back(std::move(rows)); }

  struct Part {
    Bytes at, bytes;
    const std::byte* run;  // what is copied as it lies; nullptr: `fill`
    Fill fill;
  };

  std::vector<PackedNode> nodes_;
  std::vector<Part> parts_;
  std::deque<RowSet> kept_;
  Bytes bytes_ = 0;
};

}  // namespace waywiser
