#include "waywiser/collective/neighbor_exchange/array_part.hpp"

#include <algorithm>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/neighbor_exchange/array_exchange.hpp"
#include "waywiser/comm/session/call_arrays.hpp"

namespace waywiser {
namespace {

using Dimension = BlockLayout::Dimension;

[[noreturn]] void refuse_part(const std::string& why) { throw Error(ErrorKind::invalid_input, why); }

// Drops dimensions of one element and joins dimensions that are contiguous with the next inner one.
std::vector<Dimension> joined(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  std::vector<Dimension> all;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (strides[i] < 0) refuse_part("has a stride below zero");
    const Dimension each{static_cast<std::size_t>(shape[i]), static_cast<std::size_t>(strides[i])};
    if (!all.empty() && all.back().stride == each.count * each.stride)
      all.back() = {all.back().count * each.count, each.stride};
    else
      all.push_back(each);
  }
  return all;
}

void add_uses(std::vector<PartUse>& uses, const ArrayPart& part, const Elements& array, std::size_t neighbor,
              bool taken) {
  const std::size_t size = bytes_of(part.type);
  const auto add = [&](std::size_t first, std::size_t count) {
    uses.push_back({{array.region.data + first * size, count * size, array.region.place}, neighbor, taken});
  };
  if (!part.apart) return add(part.offset, part.count);
  for (std::size_t run = 0; run < part.layout.runs(); ++run)
    add(part.offset + part.layout.run_at(run), part.layout.run);
}

}  // namespace

ArrayPart ArrayPart::box(DataType type, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides) {
  if (std::ranges::count(shape, 0) != 0) return whole(type, 0);
  std::vector<Dimension> dimensions = joined(shape, strides);
  ArrayPart part = whole(type, 1);
  if (!dimensions.empty() && dimensions.back().stride == 1) {
    part.layout.run = dimensions.back().count;
    dimensions.pop_back();
  }
  if (dimensions.size() > part.layout.box.size())
    refuse_part("has " + std::to_string(dimensions.size()) + " dimensions whose elements lie apart: there can be " +
                std::to_string(part.layout.box.size()));
  std::ranges::copy_backward(dimensions, part.layout.box.end());
  part.apart = !dimensions.empty();
  part.count = part.layout.runs() * part.layout.run;
  part.array_count = part.layout.run;
  for (const Dimension& each : dimensions) part.array_count += (each.count - 1) * each.stride;
  return part;
}

ArrayPart ArrayPart::indexed(DataType type, std::size_t array_count, std::span<const std::int64_t> indices,
                             std::size_t length) {
  ArrayPart part{type, array_count, 0, indices.size() * length, {}, true};
  if (part.count == 0) return whole(type, 0);
  part.layout.run = length;
  part.layout.indices.reserve(indices.size());
  for (const std::int64_t index : indices) {
    if (index < 0 || length > array_count || static_cast<std::size_t>(index) > array_count - length)
      refuse_part("has " + std::to_string(array_count) + " elements: there are not " + std::to_string(length) +
                  " from index " + std::to_string(index) + " on");
    part.layout.indices.push_back(static_cast<std::size_t>(index));
  }
  return part;
}

void check_apart(std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays) {
  std::vector<PartUse> uses;
  for (std::size_t i = 0; i < neighbors.size(); ++i) {
    add_uses(uses, neighbors[i].give, arrays[2 * i], i, false);
    add_uses(uses, neighbors[i].take, arrays[2 * i + 1], i, true);
  }
  check_exchange(uses, [&](std::size_t part) { return neighbors[part].peer; });
}

}  // namespace waywiser
