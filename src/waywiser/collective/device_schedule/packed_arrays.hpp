#pragma once

#include <memory>
#include <span>
#include <vector>

#include "waywiser/collective/device_schedule/local_program.hpp"
#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

// The contiguous arrays that messages carry for an exchange whose parts may be strided: packed copies, or the arrays
// themselves if they are contiguous. On a GPU one kernel packs and one unpacks, whatever the number of parts.
class PackedArrays {
 public:
  // `arrays`: what each neighbour gives and takes, on the host or on one GPU of `platform`; they must stay. Throws the
  // platform's errors.
  PackedArrays(Platform* platform, std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays);
  PackedArrays(const PackedArrays&) = delete;
  PackedArrays& operator=(const PackedArrays&) = delete;

  // In the order of `arrays`.
  const std::vector<Elements>& packed() const noexcept { return packed_; }

  // Complete on return. Throws the stream's errors.
  void pack() { copy(gives_); }
  void unpack() { copy(takes_); }
  // The same for GPU arrays, to be enqueued; nullptr if there is nothing to do.
  DeviceExecution* packing() const noexcept { return gives_.execution(); }
  DeviceExecution* unpacking() const noexcept { return takes_.execution(); }

 private:
  struct Copy {
    ArrayPart part;
    Elements apart, packed;
  };
  struct Direction {
    std::vector<Copy> on_host;
    std::unique_ptr<LocalProgram> on_gpu;  // nullptr: no GPU arrays

    DeviceExecution* execution() const noexcept { return on_gpu ? &on_gpu->execution() : nullptr; }
  };
  std::unique_ptr<LocalProgram> program(std::span<const Copy> copies, bool packs);
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
