#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/kernels/block/exposed.hpp"

namespace waywiser {

// The windows of GPU memory of one group, in slots with equal numbers at all ranks: for kernels that store directly
// into peers' memory.
class ExposedMemory {
 public:
  static constexpr unsigned slots = block::exposed_slots;  // from 1

  struct Window {
    std::vector<Region> ranks;           // as mapped in this process
    std::shared_ptr<const void> mapped;  // holds them and the slot
    Region symmetric;                    // this rank's, where all ranks use equal offsets; else empty
  };
  class Watcher {
   public:
    virtual void came(unsigned slot, const Window& window) = 0;
    virtual void went(unsigned slot, const Window& window) noexcept = 0;

   protected:
    ~Watcher() = default;
  };

  // Bit i: slot i is in use at this rank.
  std::uint32_t in_use() const noexcept;
  void add(unsigned slot, Window window);
  void remove(unsigned slot) noexcept;
  // The slot of the symmetric window that holds all of `array`, and where; slot 0: none does.
  std::pair<unsigned, Bytes> symmetric_place(ConstRegion array) const noexcept;
  const Window& window(unsigned slot) const { return windows_.at(slot); }
  // The watcher also hears of the windows that exist already. nullptr: nobody watches.
  void watch(Watcher* watcher);

 private:
  std::array<Window, slots + 1> windows_;
  std::array<std::weak_ptr<const void>, slots + 1> kept_;
  Watcher* watcher_ = nullptr;
};

}  // namespace waywiser
