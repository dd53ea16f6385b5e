#pragma once

#include <array>
#include <span>

#include "waywiser/device/platform.hpp"
#include "waywiser/kernels/block/exposed.hpp"

namespace waywiser {

// The windows of a group's ranks, in the memory of this rank's GPU, where kernels look them up.
class ExposedTable {
 public:
  // The GPU memory that it needs.
  static Bytes bytes();
  // Clears `table` on the stream's GPU, which must stay. Throws the platform's errors.
  ExposedTable(Platform& platform, Stream& stream, int rank, int ranks, Region table);

  // Sets a slot (1 to block::exposed_slots), free at all ranks, to the memories of all ranks, as mapped in this process
  // for this GPU. An empty region marks memory that is not, or no longer, exposed or reachable; kernels that have begun
  // may still store there. Uploads on the stream, of this GPU.
  void expose(unsigned slot, std::span<const Region> memories, Stream& stream);

  // The slot of this rank's memory that contains all of `array`; 0: none.
  std::uint32_t slot_of(ConstRegion array) const;
  bool empty() const;
  // [slot][max_ranks], as kernels on the stream reach it.
  const block::Exposed* reached_from(const Stream& stream) const;

 private:
  std::size_t rank_, ranks_;
  Region table_;
  Memory staging_;
  std::array<Region, block::exposed_slots + 1> mine_{};
};

}  // namespace waywiser
