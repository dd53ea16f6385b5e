#include "waywiser/comm/peer_memory/exposed_memory.hpp"

#include <utility>

namespace waywiser {

std::uint32_t ExposedMemory::in_use() const noexcept {
  std::uint32_t all = 0;
  for (unsigned slot = 1; slot <= slots; ++slot)
    if (!kept_[slot].expired()) all |= 1u << slot;
  return all;
}

void ExposedMemory::add(unsigned slot, Window window) {
  if (watcher_ != nullptr) watcher_->came(slot, window);
  kept_[slot] = window.mapped;
  windows_[slot] = std::move(window);
}

void ExposedMemory::remove(unsigned slot) noexcept {
  const Window gone = std::exchange(windows_[slot], {});
  if (watcher_ != nullptr) watcher_->went(slot, gone);
}

std::pair<unsigned, Bytes> ExposedMemory::symmetric_place(ConstRegion array) const noexcept {
  for (unsigned slot = 1; slot <= slots; ++slot) {
    const Region& mine = windows_[slot].symmetric;
    if (mine.bytes == 0 || mine.place != array.place || array.data < mine.data) continue;
    const auto offset = static_cast<Bytes>(array.data - mine.data);
    if (offset <= mine.bytes && array.bytes <= mine.bytes - offset) return {slot, offset};
  }
  return {};
}

void ExposedMemory::watch(Watcher* watcher) {
  for (unsigned slot = 1; watcher != nullptr && slot <= slots; ++slot)
    if (!windows_[slot].ranks.empty()) watcher->came(slot, windows_[slot]);
  watcher_ = watcher;
}

}  // namespace waywiser
