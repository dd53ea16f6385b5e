#pragma once

#include <cstddef>
#include <vector>

#include "waywiser/collective/call.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// Consecutive blocks of a buffer.
class Extents {
 public:
  // One block for each rank, as the call says.
  explicit Extents(const CollectiveCall& call);
  explicit Extents(const std::vector<std::size_t>& counts);
  // `count` elements in `parts` parts whose sizes differ by at most one.
  Extents(std::size_t count, int parts);

  int parts() const noexcept { return static_cast<int>(offsets_.size()) - 1; }
  std::size_t total() const noexcept { return offsets_.back(); }
  std::size_t largest() const noexcept;
  std::size_t count(int part) const { return block(Area::input, part).count; }
  Block block(Area area, int part) const { return range(area, part, part + 1); }
  // Parts first, ..., last - 1, relative to a buffer that begins at `from`.
  Block range(Area area, int first, int last, std::size_t from = 0) const;

 private:
  std::vector<std::size_t> offsets_;
};

// i modulo n, also for a negative i.
constexpr int wrap(int i, int n) { return (i % n + n) % n; }

inline Block input(std::size_t count) { return {Area::input, 0, count}; }
inline Block output(std::size_t count) { return {Area::output, 0, count}; }
inline Block scratch(std::size_t offset, std::size_t count) { return {Area::scratch, offset, count}; }

}  // namespace waywiser
