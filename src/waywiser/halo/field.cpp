#include "waywiser/halo/field.hpp"

namespace waywiser {
namespace {

// `cells` with `bytes` for each cell.
ArrayPart scaled(ArrayPart cells, std::size_t bytes) {
  cells.offset *= bytes;
  cells.count *= bytes;
  cells.layout.run *= bytes;
  for (BlockLayout::Dimension& each : cells.layout.box) each.stride *= bytes;
  for (std::size_t& each : cells.layout.indices) each *= bytes;
  return cells;
}

// The same part once for each component, `apart` bytes from one to the next.
void repeat(ArrayPart& part, std::size_t times, std::size_t apart) {
  if (!part.apart) part.layout.run = part.count;
  part.apart = true;
  part.count *= times;
  BlockLayout& layout = part.layout;
  if (layout.indices.empty() && layout.box[0].count == 1) {
    layout.box[0] = {times, apart};
    return;
  }
  std::vector<std::size_t> indices;
  indices.reserve(times * layout.runs());
  for (std::size_t i = 0; i < times; ++i)
    for (std::size_t run = 0; run < layout.runs(); ++run) indices.push_back(i * apart + layout.run_at(run));
  layout = {layout.run, {}, std::move(indices)};
}

}  // namespace

ArrayPart bytes_of_cells(const ArrayPart& cells, const HaloField& field, std::size_t all) {
  const std::size_t size = bytes_of(field.type);
  const bool together = field.components == 1 || !field.planar;
  ArrayPart part = scaled(cells, together ? size * field.components : size);
  if (!together && part.count != 0) repeat(part, field.components, all * size);
  part.type = DataType::uint8;
  part.array_count = all * field.bytes_per_cell();
  return part;
}

ArrayPart bytes_of_component(const ArrayPart& cells, const HaloField& field, std::size_t all, std::size_t component) {
  const std::size_t size = bytes_of(field.type);
  ArrayPart part = scaled(cells, size);
  part.offset += component * all * size;
  part.type = DataType::uint8;
  part.array_count = all * field.bytes_per_cell();
  return part;
}

bool makes_a_list(const ArrayPart& cells, const HaloField& field) {
  return field.planar && field.components > 1 && cells.apart && cells.layout.indices.empty() &&
         cells.layout.box[0].count != 1;
}

}  // namespace waywiser
