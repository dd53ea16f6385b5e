#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

class Platform;

// Memory for packed pieces in one place, each at a multiple of 64 bytes. On hosts new memory costs a fault for each
// page, more time than to copy what goes there: so blocks that were sent are used again, and all lie behind one another
// in large pages.
class PieceBlocks {
 public:
  // `platform`: of a GPU, else nullptr.
  PieceBlocks(std::shared_ptr<Platform> platform, Place place) : platform_(std::move(platform)), place_(place) {}

  Place place() const noexcept { return place_; }
  // From now on blocks of a part, of `parts`, lie together: their memory is free when all of them are.
  void keep_together(int parts);
  // Used again from now on, where they have about `piece` bytes.
  void use_again(Bytes piece) noexcept { piece_ = place_.is_gpu() ? 0 : piece; }

  // Of what stays. Any other number of a part: alone.
  std::shared_ptr<std::byte> of_part(std::uint64_t part, Bytes bytes);
  // No more of this part comes.
  void end_part(std::uint64_t part);
  std::shared_ptr<std::byte> to_send(Bytes bytes);
  // Of what is freed by itself.
  std::shared_ptr<std::byte> alone(Bytes bytes) const;

 private:
  struct OfPart {
    std::shared_ptr<std::byte> slab;
    Bytes at = 0, room = 0, before = 0;
  };

  std::shared_ptr<Platform> platform_;
  Place place_;
  Bytes piece_ = 0;
  std::vector<std::shared_ptr<std::byte>> sent_;
  std::shared_ptr<std::byte> block_to_send();

  std::vector<OfPart> of_part_;
  std::shared_ptr<std::byte> slab_;  // of blocks to send
  Bytes slab_room_ = 0;
};

}  // namespace waywiser
