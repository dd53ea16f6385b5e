#include "waywiser/comm/peer_memory/receive_arena.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/clear.hpp"

namespace waywiser {
namespace {

constexpr Bytes page = 4096, least_block = Bytes{4} << 20;

Bytes in_pages(Bytes bytes) { return (bytes + page - 1) / page * page; }

}  // namespace

ReceiveArena::ReceiveArena(Platform& platform, Place gpu, const Seconds& timeout)
    : platform_(platform), gpu_(gpu), timeout_(timeout) {}

// In most jobs one group does most of the work: the first group gets more than half, every later one a quarter of the
// rest.
Bytes ReceiveArena::share_for(int ranks) {
  collect();
  if (taken_ == 0) return std::min(most(), limit - (Bytes{2} << 20) * static_cast<Bytes>(ranks + 4));
  return std::min(most(), (limit - taken_) / 4);
}

Bytes ReceiveArena::most() const {
  Bytes most = limit - set_aside_;
  for (const Hole& hole : holes_) most = std::max(most, hole.bytes);
  return most;
}

std::optional<Region> ReceiveArena::take(Bytes bytes) {
  collect();
  const auto slice = cut_off(in_pages(bytes));
  if (slice) clear(*platform_.open_stream(gpu_), slice->slice(0, header_bytes));
  return slice;
}

std::optional<Region> ReceiveArena::take_plain(Bytes bytes) {
  collect();
  return cut_off(in_pages(bytes));
}

// Uses the first hole that is large enough, or allocates a block: as large as other groups may want, within the limit.
std::optional<Region> ReceiveArena::cut_off(Bytes bytes) {
  auto hole = std::ranges::find_if(holes_, [&](const Hole& each) { return each.bytes >= bytes; });
  if (hole == holes_.end()) {
    const Bytes most = limit - set_aside_;
    if (bytes > most) return {};
    const Bytes block = std::min(most, std::max(bytes, least_block));
    blocks_.push_back(platform_.allocate(gpu_, block, Allocation::gpu));
    set_aside_ += block;
    holes_.push_back({blocks_.back().region().data, block});
    hole = std::prev(holes_.end());
  }
  const Region slice{hole->begin, bytes, gpu_};
  hole->begin += bytes;
  hole->bytes -= bytes;
  if (hole->bytes == 0) holes_.erase(hole);
  taken_ += bytes;
  return slice;
}

Region ReceiveArena::take_apart(Bytes bytes) {
  collect();
  Memory memory = platform_.allocate(gpu_, in_pages(bytes), Allocation::gpu);
  const Region region = memory.region();
  apart_[region.data] = std::move(memory);
  return region;
}

void ReceiveArena::give_back(Region slice) noexcept {
  if (apart_.erase(slice.data) != 0 || blocks_.empty()) return;
  taken_ -= slice.bytes;
  holes_.push_back({slice.data, slice.bytes});
  std::ranges::sort(holes_, {}, &Hole::begin);
  const auto in_one_block = [this](const Hole& a, const Hole& b) {
    return std::ranges::any_of(blocks_, [&](const Memory& block) {
      const Region all = block.region();
      return a.begin >= all.data && b.begin < all.data + all.bytes;
    });
  };
  for (std::size_t i = 0; i + 1 < holes_.size();)
    if (holes_[i].begin + holes_[i].bytes == holes_[i + 1].begin && in_one_block(holes_[i], holes_[i + 1])) {
      holes_[i].bytes += holes_[i + 1].bytes;
      holes_.erase(holes_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else {
      ++i;
    }
}

void ReceiveArena::leave(Region slice, int others, std::vector<Region> more) noexcept {
  leaving_.push_back({slice, others, std::move(more)});
}

void ReceiveArena::collect() {
  std::erase_if(leaving_, [this](const Leaving& group) {
    if (!have_left(group)) return false;
    for (const Region& memory : group.more) give_back(memory);
    give_back(group.slice);
    return true;
  });
}

bool ReceiveArena::have_left(const Leaving& group) {
  const Memory seen = platform_.allocate(platform_.nearest_host(gpu_.index), header_bytes, Allocation::pinned);
  const auto stream = platform_.open_stream(gpu_);
  stream->copy(seen.region().slice(0, header_bytes), group.slice.slice(0, header_bytes));
  stream->synchronize(Deadline::in(timeout_));
  const auto* begin = reinterpret_cast<const std::uint64_t*>(seen.region().data);
  return std::count_if(begin, begin + block::max_ranks, [](std::uint64_t word) { return word != 0; }) >= group.others;
}

void ReceiveArena::close() noexcept {
  leaving_.clear();
  holes_.clear();
  blocks_.clear();
  apart_.clear();
  taken_ = set_aside_ = 0;
}

}  // namespace waywiser
