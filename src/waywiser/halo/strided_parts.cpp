#include "waywiser/halo/strided_parts.hpp"

#include <algorithm>

namespace waywiser {
namespace {

// Runs of a list that follow each other at the same distance are one copy.
std::vector<StridedRows> copies_of_list(std::size_t offset, const BlockLayout& layout) {
  const std::vector<std::size_t>& at = layout.indices;
  std::vector<StridedRows> copies;
  for (std::size_t i = 0; i < at.size();) {
    StridedRows& copy = copies.emplace_back(StridedRows{offset + at[i], layout.run});
    std::size_t next = i + 1;
    if (next < at.size() && at[next] >= at[i] + layout.run) {
      copy.row_stride = at[next] - at[i];
      while (next < at.size() && at[next] == at[next - 1] + copy.row_stride) ++next;
      copy.rows = next - i;
    }
    i = next;
  }
  return copies;
}

std::vector<StridedRows> copies_of_box(std::size_t offset, const BlockLayout& layout) {
  const auto& [outer, middle, inner] = layout.box;
  const bool together = middle.count == 1 || inner.count == 1 || middle.stride % inner.stride == 0;
  std::vector<StridedRows> copies;
  for (std::size_t i = 0; i < outer.count; ++i) {
    const std::size_t first = offset + i * outer.stride;
    for (std::size_t j = 0; j < (together ? 1 : middle.count); ++j)
      copies.push_back({first + j * middle.stride, layout.run, inner.count, inner.stride, together ? middle.count : 1,
                        together ? middle.stride : 0});
  }
  return copies;
}

}  // namespace

std::vector<StridedRows> strided_copies(const ArrayPart& part) {
  if (part.count == 0) return {};
  if (!part.apart) return {{part.offset, part.count}};
  return part.layout.indices.empty() ? copies_of_box(part.offset, part.layout)
                                     : copies_of_list(part.offset, part.layout);
}

}  // namespace waywiser
