#include "waywiser/collective/on_stream/exposed_table.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

constexpr Bytes row_bytes = block::max_ranks * sizeof(block::Exposed);
constexpr Bytes table_bytes = (block::exposed_slots + 1) * row_bytes;
constexpr Seconds patience = 60;

block::Exposed reached(const Stream& stream, Region memory) {
  if (memory.bytes == 0) return {};
  try {
    return {stream.reach(memory), memory.bytes};
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

Bytes ExposedTable::bytes() { return table_bytes; }

ExposedTable::ExposedTable(Platform& platform, Stream& stream, int rank, int ranks, Region table)
    : rank_(static_cast<std::size_t>(rank)),
      ranks_(static_cast<std::size_t>(ranks)),
      table_(table.slice(0, table_bytes)),
      staging_(platform.allocate(platform.nearest_host(stream.place().index), row_bytes, Allocation::pinned)) {
  clear(stream, table_);
}

void ExposedTable::expose(unsigned slot, std::span<const Region> memories, Stream& stream) {
  if (slot == 0 || slot > block::exposed_slots || memories.size() != ranks_)
    throw Error(ErrorKind::invalid_input, std::to_string(memories.size()) + " memories of " + std::to_string(ranks_) +
                                              " ranks in slot " + std::to_string(slot));
  const Region mine = memories[rank_];
  mine_[slot] = {};
  std::array<block::Exposed, block::max_ranks> row{};
  for (std::size_t rank = 0; mine.place == stream.place() && rank < memories.size(); ++rank)
    row[rank] = reached(stream, memories[rank]);
  const Region staged = staging_.region().slice(0, row_bytes);
  std::memcpy(staged.data, row.data(), row_bytes);
  stream.copy(table_.slice(slot * row_bytes, row_bytes), staged);
  stream.synchronize(Deadline::in(patience));
  mine_[slot] = mine;
}

std::uint32_t ExposedTable::slot_of(ConstRegion array) const {
  for (std::uint32_t slot = 1; slot <= block::exposed_slots; ++slot) {
    const Region& memory = mine_[slot];
    if (memory.place == array.place && array.data >= memory.data &&
        array.data + array.bytes <= memory.data + memory.bytes)
      return slot;
  }
  return 0;
}

bool ExposedTable::empty() const {
  return std::ranges::all_of(mine_, [](const Region& memory) { return memory.bytes == 0; });
}

const block::Exposed* ExposedTable::reached_from(const Stream& stream) const {
  return reinterpret_cast<const block::Exposed*>(stream.reach(ConstRegion(table_)));
}

}  // namespace waywiser
