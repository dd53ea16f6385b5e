#include "waywiser/table/piece_blocks.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "waywiser/device/mapping.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/table/pack.hpp"

namespace waywiser {
namespace {

constexpr Bytes large_page = Bytes{2} << 20, slab_bytes = Bytes{32} << 20;  // only touched pages of a slab take memory

// A block may outlive the group.
struct OfGpu {
  std::shared_ptr<Platform> platform;
  Memory memory;
};

// Pages at a multiple of large ones.
struct Slab {
  explicit Slab(Bytes bytes) : mapping(Mapping::anonymous(bytes + large_page, "a table's part")) {
    data = mapping.data() + (large_page - reinterpret_cast<std::uintptr_t>(mapping.data()) % large_page);
    ::madvise(data, bytes, MADV_HUGEPAGE);  // refused: pages of the usual size
  }
  Mapping mapping;
  std::byte* data;
};

// Slabs that nobody uses, for the next shuffle; the system takes their pages when it needs memory.
class FreeSlabs {
 public:
  std::unique_ptr<Slab> take() {
    const std::lock_guard lock(mutex_);
    if (slabs_.empty()) return {};
    auto slab = std::move(slabs_.back());
    slabs_.pop_back();
    return slab;
  }
  void give(std::unique_ptr<Slab> slab) {
    if (::madvise(slab->data, slab_bytes, MADV_FREE) != 0) return;
    const std::lock_guard lock(mutex_);
    if (slabs_.size() < most_free) slabs_.push_back(std::move(slab));
  }

 private:
  static constexpr std::size_t most_free = 16;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Slab>> slabs_;
};

// Never destroyed: tables may outlive it.
FreeSlabs& free_slabs() {
  static auto* all = new FreeSlabs;
  return *all;
}

std::shared_ptr<std::byte> new_slab(Bytes bytes) {
  std::unique_ptr<Slab> slab = bytes == slab_bytes ? free_slabs().take() : nullptr;
  if (!slab) slab = std::make_unique<Slab>(bytes);
  std::byte* data = slab->data;
  return {data, [bytes, owner = slab.release()](std::byte*) {
            std::unique_ptr<Slab> back(owner);
            if (bytes == slab_bytes) free_slabs().give(std::move(back));
          }};
}

}  // namespace

void PieceBlocks::keep_together(int parts) {
  if (!place_.is_gpu()) of_part_.resize(static_cast<std::size_t>(parts));
}

std::shared_ptr<std::byte> PieceBlocks::of_part(std::uint64_t part, Bytes bytes) {
  if (part >= of_part_.size()) return alone(bytes);
  OfPart& here = of_part_[part];
  const Bytes length = with_padding(bytes);
  here.before += length;
  if (here.before <= large_page) return alone(bytes);  // a large page would be mostly empty
  if (length > here.room) {
    here.room = std::max(slab_bytes, (length + large_page - 1) / large_page * large_page);
    here.slab = new_slab(here.room);
    here.at = 0;
  }
  here.room -= length;
  return {here.slab, here.slab.get() + std::exchange(here.at, here.at + length)};
}

void PieceBlocks::end_part(std::uint64_t part) {
  if (part < of_part_.size()) of_part_[part] = {};
}

std::shared_ptr<std::byte> PieceBlocks::to_send(Bytes bytes) {
  if (bytes > piece_ || bytes < piece_ / 4) return alone(bytes);
  const auto is_free = [](const std::shared_ptr<std::byte>& block) { return block.use_count() == 1; };
  const auto found = std::ranges::find_if(sent_, is_free);
  return found == sent_.end() ? sent_.emplace_back(block_to_send()) : *found;
}

// Pages of 4 KiB are looked up one by one when another process reads them.
std::shared_ptr<std::byte> PieceBlocks::block_to_send() {
  const Bytes length = with_padding(piece_);
  if (length * (sent_.size() + 1) <= large_page || length > slab_bytes) return alone(piece_);
  if (length > slab_room_) {
    slab_ = new_slab(slab_bytes);
    slab_room_ = slab_bytes;
  }
  std::byte* const data = slab_.get() + slab_bytes - std::exchange(slab_room_, slab_room_ - length);
  return {std::make_shared<const std::shared_ptr<std::byte>>(slab_), data};  // each is free by itself
}

std::shared_ptr<std::byte> PieceBlocks::alone(Bytes bytes) const {
  bytes = std::max<Bytes>(bytes, 1);
  if (place_.is_gpu()) {
    auto owner = std::make_shared<const OfGpu>(OfGpu{platform_, platform_->allocate(place_, bytes, Allocation::gpu)});
    std::byte* data = owner->memory.region().data;
    return {std::move(owner), data};
  }
  constexpr std::align_val_t alignment{packed_alignment};
  auto* data = static_cast<std::byte*>(::operator new(bytes, alignment));
  return {data, [](std::byte* it) { ::operator delete(it, alignment); }};
}

}  // namespace waywiser
