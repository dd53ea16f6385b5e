#pragma once

#include <memory>
#include <span>
#include <vector>

#include "waywiser/collective/device_schedule/device_execution.hpp"
#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// What messages carry of an exchange whose parts may lie apart: copies whose elements lie one after the other, and the
// arrays themselves where they do. On a GPU one kernel packs and one unpacks, whatever the number of parts.
class PackedArrays {
 public:
  // `arrays`: what each of the neighbours gives and takes, of the host or of one GPU of `platform`; they must stay.
  // Throws as the platform does.
  PackedArrays(Platform* platform, std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays);
  PackedArrays(const PackedArrays&) = delete;
  PackedArrays& operator=(const PackedArrays&) = delete;

  // In the order of `arrays`.
  const std::vector<Elements>& packed() const noexcept { return packed_; }

  // Complete on return. Throws as streams do.
  void pack() { copy(gives_); }
  void unpack() { copy(takes_); }
  // The same of a GPU's arrays, to be enqueued; null where there is nothing to do.
  DeviceExecution* packing() const noexcept { return gives_.on_gpu.get(); }
  DeviceExecution* unpacking() const noexcept { return takes_.on_gpu.get(); }

 private:
  struct Copy {
    ArrayPart part;
    Elements apart, packed;
  };
  struct Direction {
    std::vector<Copy> on_host;
    std::unique_ptr<DeviceExecution> on_gpu;  // null: nothing there
    Memory landing;
  };
  std::unique_ptr<DeviceExecution> program(std::span<const Copy> copies, bool packs, Memory& landing);
  void set_up(Direction& direction, const std::vector<Copy>& copies, bool packs);
  void copy(const Direction& direction) const;

  Platform* platform_;
  Place gpu_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::byte> host_memory_;
  Memory gpu_memory_;
  std::vector<Elements> packed_;
  Direction gives_, takes_;
};

}  // namespace waywiser
