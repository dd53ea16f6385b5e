#include "waywiser/comm/round_check.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace waywiser {
namespace {

struct RunAccess {
  std::size_t first = 0, end = 0;
  bool write = false;
};

bool overlap(std::vector<RunAccess>& accesses) {
  std::ranges::sort(accesses, {}, &RunAccess::first);
  std::size_t written = 0, read = 0;  // up to here
  for (const RunAccess& access : accesses) {
    if (access.first < written || (access.write && access.first < read)) return true;
    (access.write ? written : read) = std::max(access.write ? written : read, access.end);
  }
  return false;
}

// A block within one window of its buffer: where it begins there, and the box or the contiguous elements that it has.
struct InWindow {
  std::size_t offset = 0, run = 0;
  std::array<std::size_t, 6> box{};  // counts and strides
  bool write = false;

  auto operator<=>(const InWindow&) const = default;
};

// Accesses of one buffer.
class BufferCheck {
 public:
  explicit BufferCheck(const Schedule& schedule) : schedule_(schedule) {}

  void add(const BlockAccess& access) { accesses_.push_back(access); }
  bool touch_the_same(std::size_t many) const {
    std::size_t runs = 0;
    for (const BlockAccess& each : accesses_) runs += layout_of(each) == nullptr ? 1 : layout_of(each)->runs();
    const auto windows = runs < many ? std::nullopt : in_windows();
    if (!windows) return by_runs();
    std::vector<const std::vector<InWindow>*> kinds;
    for (const auto& [window, all] : *windows) kinds.push_back(&all);
    std::ranges::sort(kinds, [](const auto* a, const auto* b) { return *a < *b; });
    kinds.erase(std::unique(kinds.begin(), kinds.end(), [](const auto* a, const auto* b) { return *a == *b; }),
                kinds.end());
    return std::ranges::any_of(kinds, [](const auto* all) { return by_runs(*all); });
  }

 private:
  const BlockLayout* layout_of(const BlockAccess& access) const {
    return access.block->layout == 0 ? nullptr : &schedule_.layouts[access.block->layout - 1];
  }

  bool by_runs() const {
    std::vector<RunAccess> all;
    for (const BlockAccess& each : accesses_)
      for_each_run(schedule_, *each.block,
                   [&](std::size_t first, std::size_t count) { all.push_back({first, first + count, each.write}); });
    return overlap(all);
  }
  static bool by_runs(const std::vector<InWindow>& window) {
    std::vector<RunAccess> all;
    for (const InWindow& each : window)
      for (std::size_t i = 0; i < each.box[0]; ++i)
        for (std::size_t j = 0; j < each.box[2]; ++j)
          for (std::size_t k = 0; k < each.box[4]; ++k) {
            const std::size_t first = each.offset + i * each.box[1] + j * each.box[3] + k * each.box[5];
            all.push_back({first, first + each.run, each.write});
          }
    return overlap(all);
  }

  // The largest stride is that of the windows. Empty if the blocks are not boxes that fit into them.
  std::optional<std::map<std::size_t, std::vector<InWindow>>> in_windows() const {
    std::size_t width = 0;
    for (const BlockAccess& each : accesses_)
      if (const BlockLayout* layout = layout_of(each); layout != nullptr) {
        if (!layout->indices.empty()) return {};
        for (const BlockLayout::Dimension& dimension : layout->box)
          if (dimension.count > 1) width = std::max(width, dimension.stride);
      }
    if (width == 0) return {};
    std::map<std::size_t, std::vector<InWindow>> windows;
    for (const BlockAccess& each : accesses_) {
      InWindow part{each.block->offset % width, each.block->count, {1, 0, 1, 0, 1, 0}, each.write};
      std::size_t times = 1, end = part.offset + part.run;
      if (const BlockLayout* layout = layout_of(each); layout != nullptr) {
        part.run = layout->run;
        end = part.offset + part.run;
        for (std::size_t i = 0; i < layout->box.size(); ++i) {
          auto [count, stride] = layout->box[i];
          if (count > 1 && stride == width) {
            if (times > 1) return {};
            times = std::exchange(count, 1);
          }
          part.box[2 * i] = count;
          part.box[2 * i + 1] = count == 1 ? 0 : stride;
          end += (count - 1) * part.box[2 * i + 1];
        }
      }
      if (end > width) return {};
      for (std::size_t i = 0; i < times; ++i) windows[each.block->offset / width + i].push_back(part);
    }
    return windows;
  }

  const Schedule& schedule_;
  std::vector<BlockAccess> accesses_;
};

}  // namespace

bool touch_the_same(const Schedule& schedule, std::span<const BlockAccess> accesses, std::size_t many) {
  std::map<std::size_t, BufferCheck> buffers;
  for (const BlockAccess& each : accesses) {
    if (each.block->count == 0) continue;
    const std::size_t buffer =
        each.block->area == Area::array ? 3 + each.block->array : static_cast<std::size_t>(each.block->area);
    buffers.try_emplace(buffer, schedule).first->second.add(each);
  }
  return std::ranges::any_of(buffers, [&](const auto& each) { return each.second.touch_the_same(many); });
}

}  // namespace waywiser
