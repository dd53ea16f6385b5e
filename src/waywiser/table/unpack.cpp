#include "waywiser/table/unpack.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// What an array of ours holds until it is released.
struct ArrayOwner {
  std::shared_ptr<const std::byte> block;
  const void* buffers[3] = {};
  std::vector<Batch> arrays;  // in this one; a consumer may move them out
  std::vector<ArrowArray*> children;
};

void release_array(ArrowArray* array) {
  delete static_cast<ArrayOwner*>(array->private_data);
  array->release = nullptr;
}

Batch array_of(std::unique_ptr<ArrayOwner> owner, const PackedNode& node, std::int64_t buffers, bool has_dictionary) {
  ArrowArray array{};
  array.length = static_cast<std::int64_t>(node.rows);
  array.null_count = static_cast<std::int64_t>(node.nulls);
  array.n_buffers = buffers;
  array.buffers = owner->buffers;
  for (Batch& each : owner->arrays) owner->children.push_back(&each.array());
  if (has_dictionary) {
    array.dictionary = owner->children.front();
  } else {
    array.n_children = static_cast<std::int64_t>(owner->children.size());
    array.children = owner->children.data();
  }
  array.private_data = owner.release();
  array.release = release_array;
  return Batch(array);
}

std::int64_t buffers_in(ColumnLayout layout) {
  if (layout == ColumnLayout::null) return 0;
  if (layout == ColumnLayout::structure || layout == ColumnLayout::fixed_list) return 1;
  return layout == ColumnLayout::binary ? 3 : 2;
}

[[noreturn]] void refuse_piece(const char* what) {
  throw Error(ErrorKind::corrupt, "a piece of a table does not fit its schema: " + std::string(what));
}

// The last of offsets that ascend from 0.
template <typename Offset>
std::uint64_t last_offset(const void* buffer, std::uint64_t rows) {
  const auto* offsets = static_cast<const Offset*>(buffer);
  bool ascend = offsets[0] == 0;
  for (std::uint64_t i = 0; i < rows; ++i) ascend &= offsets[i] <= offsets[i + 1];
  if (!ascend) refuse_piece("offsets do not ascend");
  return static_cast<std::uint64_t>(offsets[rows]);
}

class Unpacking {
 public:
  Unpacking(std::span<const PackedNode> nodes, const std::shared_ptr<const std::byte>& block, Bytes bytes, bool on_gpu)
      : nodes_(nodes), block_(block), bytes_(bytes), on_gpu_(on_gpu) {}

  Batch table(const TableSchema& schema, std::uint64_t rows) {
    if (schema.nodes() != nodes_.size()) refuse_piece("the number of columns");
    auto owner = std::make_unique<ArrayOwner>();
    owner->arrays.reserve(schema.columns.size());
    for (const ColumnType& column : schema.columns) owner->arrays.push_back(values(column, rows));
    if (at_ != bytes_) refuse_piece("the bytes of all columns");
    return array_of(std::move(owner), {rows, 0, {}}, 1, false);
  }

 private:
  // Without `rows`: as many as the node says.
  Batch values(const ColumnType& type, std::optional<std::uint64_t> rows) {
    const PackedNode& node = nodes_[next_++];
    if (node.rows != rows.value_or(node.rows) || node.rows > most_rows ||
        (node.nulls > node.rows && node.nulls != unknown_nulls))
      refuse_piece("the number of rows");
    auto owner = std::make_unique<ArrayOwner>();
    owner->block = block_;
    take_buffers(type, node, *owner);
    owner->arrays.reserve(type.children.size());
    std::optional<std::uint64_t> within;
    if (!type.is_dictionary && !(on_gpu_ && has_offsets(type))) within = rows_within(type, node, *owner);
    for (const ColumnType& child : type.children) owner->arrays.push_back(values(child, within));
    return array_of(std::move(owner), node, buffers_in(type.layout), type.is_dictionary);
  }

  void take_buffers(const ColumnType& type, const PackedNode& node, ArrayOwner& owner) {
    const auto known = known_bytes(type, node.rows, node.nulls);
    for (std::size_t i = 0; i < 3; ++i) {
      const Bytes bytes = node.bytes[i];
      const bool is_free = i == 2 && type.layout == ColumnLayout::binary;
      if ((bytes != known[i] && !is_free) || bytes > bytes_ - at_ || with_padding(bytes) > bytes_ - at_)
        refuse_piece("the bytes of a column");
      if (i > 0 || bytes > 0) owner.buffers[i] = block_.get() + at_;
      at_ += with_padding(bytes);
    }
  }

  static bool has_offsets(const ColumnType& type) {
    return type.layout == ColumnLayout::list || type.layout == ColumnLayout::binary;
  }

  static std::uint64_t rows_within(const ColumnType& type, const PackedNode& node, const ArrayOwner& owner) {
    if (type.layout == ColumnLayout::fixed_list) return node.rows * static_cast<std::uint64_t>(type.elements);
    if (!has_offsets(type)) return node.rows;
    const std::uint64_t last = type.width == 4 ? last_offset<std::int32_t>(owner.buffers[1], node.rows)
                                               : last_offset<std::int64_t>(owner.buffers[1], node.rows);
    if (type.layout == ColumnLayout::binary && last != node.bytes[2]) refuse_piece("the bytes of strings");
    return last;
  }

  static constexpr std::uint64_t most_rows = std::uint64_t{1} << 32;  // its products do not overflow
  std::span<const PackedNode> nodes_;
  const std::shared_ptr<const std::byte>& block_;
  Bytes bytes_, at_ = 0;
  bool on_gpu_;
  std::size_t next_ = 0;
};

}  // namespace

Batch unpack(const TableSchema& schema, std::int64_t rows, std::span<const PackedNode> nodes,
             const std::shared_ptr<const std::byte>& block, Bytes bytes, bool on_gpu) {
  return Unpacking(nodes, block, bytes, on_gpu).table(schema, static_cast<std::uint64_t>(rows));
}

}  // namespace waywiser
