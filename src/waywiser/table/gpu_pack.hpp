#pragma once

#include <cstdint>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/device/region.hpp"
#include "waywiser/table/column_values.hpp"
#include "waywiser/table/pack.hpp"

namespace waywiser {

class Stream;

// Whether rows of a table on a GPU can be cut: no column has offsets, which would have to be counted anew.
bool can_be_cut(const TableSchema& schema);

// A run of rows of a batch whose buffers lie on a GPU, on the way into one block there: by copies, so that the host
// looks at nothing but the ends of offsets.
class GpuPacking {
 public:
  // Throws unavailable where copies alone do not make columns of Arrow: a bitmap that does not begin at a byte, offsets
  // that do not begin at 0, or rows of a table that cannot be cut; device, timeout.
  GpuPacking(const TableSchema& schema, const ArrowArray& batch, std::int64_t first, std::int64_t count, Stream& stream,
             Seconds timeout);

  Bytes bytes() const noexcept { return bytes_; }
  const std::vector<PackedNode>& nodes() const noexcept { return nodes_; }
  // Enqueues the copies; `into` has bytes().
  void write(Region into) const;

 private:
  void add(const ColumnValues& values, std::int64_t first, std::int64_t count);
  void add_bits(std::size_t number, const ColumnValues& values, std::int64_t first, std::int64_t count);
  std::int64_t add_offsets(const ColumnValues& values, std::int64_t first, std::int64_t count);
  void add_copy(std::size_t number, const std::byte* data, Bytes bytes);
  std::int64_t offset_at(const std::byte* data, Bytes width) const;

  struct Copy {
    Bytes at;
    ConstRegion from;
  };

  Stream& stream_;
  Seconds timeout_;
  std::vector<PackedNode> nodes_;
  std::vector<Copy> copies_;
  Bytes bytes_ = 0;
};

}  // namespace waywiser
