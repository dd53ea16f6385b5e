#pragma once

#include <memory>
#include <span>

#include "waywiser/table/batch.hpp"
#include "waywiser/table/pack.hpp"

namespace waywiser {

// A packed piece as a batch of `rows` rows, without a copy: its arrays share the owner of `block`. Throws corrupt if
// the nodes do not fit the schema, each other, or the block. `on_gpu`: the host cannot look at offsets.
Batch unpack(const TableSchema& schema, std::int64_t rows, std::span<const PackedNode> nodes,
             const std::shared_ptr<const std::byte>& block, Bytes bytes, bool on_gpu = false);

}  // namespace waywiser
