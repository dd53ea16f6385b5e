#include "waywiser/halo/gathered_grid.hpp"

#include <string>

#include "waywiser/group/failure_at_all.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/agreement.hpp"

namespace waywiser {

HaloGrid gathered_grid(Group& group, HaloGrid grid, const GridBox& mine) {
  const std::size_t dimensions = grid.shape.size();
  throw_at_all(group, failure_of([&] {
                 if (mine.first.size() != dimensions || mine.count.size() != dimensions)
                   throw Error(ErrorKind::invalid_input, "a grid: the box of this rank has other dimensions");
               }));
  grid.boxes.clear();
  require_same_grid(group, marks_of(grid));
  const auto ranks = static_cast<std::size_t>(group.size());
  std::vector<std::int64_t> words = mine.first, all(ranks * 2 * dimensions);
  words.insert(words.end(), mine.count.begin(), mine.count.end());
  group.all_gather(std::span<const std::int64_t>(words), std::span(all));
  for (auto at = all.begin(); at != all.end(); at += 2 * static_cast<std::ptrdiff_t>(dimensions)) {
    const auto counts = at + static_cast<std::ptrdiff_t>(dimensions);
    grid.boxes.push_back({{at, counts}, {counts, counts + static_cast<std::ptrdiff_t>(dimensions)}});
  }
  return grid;
}

}  // namespace waywiser
