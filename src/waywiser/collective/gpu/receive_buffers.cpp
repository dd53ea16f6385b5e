#include "waywiser/collective/gpu/receive_buffers.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds last_words = 5;

}  // namespace

void ReceiveBuffers::give_back() noexcept {
  if (gone_ || in_use_) return;  // others may still write there: the arena keeps it until the session closes
  gone_ = true;
  opened_.clear();
  if (slice_.bytes != 0) peers_.arena(gpu_).give_back(slice_);
}

SharedRegion ReceiveBuffers::take(const GroupMemory& memory) {
  const auto slice = peers_.arena(gpu_).take(memory.bytes());
  if (!slice) throw Error(ErrorKind::device, "the receive arena of " + text(gpu_) + " has no room");
  slice_ = *slice;
  memory_ = memory;
  return peers_.share(slice_);
}

void ReceiveBuffers::open(std::size_t rank, const SharedRegion& slice) {
  const std::shared_ptr<const Memory> memory = peers_.open(slice, gpu_);
  opened_[rank] = {memory, memory->region().slice(slice.offset, slice.bytes)};
}

void ReceiveBuffers::close(std::size_t rank) noexcept { opened_.erase(rank); }

std::vector<Region> ReceiveBuffers::slices() const {
  std::vector<Region> all(static_cast<std::size_t>(memory_.ranks));
  for (const auto& [rank, opened] : opened_) all[rank] = opened.slice;
  all[static_cast<std::size_t>(rank_)] = slice_;
  return all;
}

std::vector<Region> ReceiveBuffers::fused_of_all() const {
  std::vector<Region> all = slices();
  for (Region& slice : all)
    if (slice.bytes != 0) slice = slice.slice(memory_.fused_at(), memory_.messages_at() - memory_.fused_at());
  return all;
}

std::vector<Region> ReceiveBuffers::messages_of_all() const {
  std::vector<Region> all = slices();
  for (Region& slice : all)
    if (slice.bytes != 0) slice = slice.slice(memory_.messages_at(), memory_.bytes() - memory_.messages_at());
  return all;
}

Region ReceiveBuffers::take_apart(Bytes bytes) {
  more_.push_back(peers_.arena(gpu_).take_apart(bytes));
  return more_.back();
}

Region ReceiveBuffers::take_within(Bytes bytes) {
  const auto memory = peers_.arena(gpu_).take_plain(bytes);
  if (!memory)
    throw Error(ErrorKind::unavailable, std::to_string(bytes >> 10) + " KiB are more than is left of the " +
                                            std::to_string(ReceiveArena::limit >> 20) +
                                            " MiB that a process sets aside on a GPU");
  more_.push_back(*memory);
  return *memory;
}

std::vector<Region> ReceiveBuffers::open_apart(std::span<const SharedRegion> memories, Region own) {
  std::vector<Region> all;
  for (std::size_t rank = 0; rank < memories.size(); ++rank) {
    if (static_cast<int>(rank) == rank_) {
      all.push_back(own);
      continue;
    }
    opened_apart_.push_back(peers_.open(memories[rank], gpu_));
    all.push_back(opened_apart_.back()->region().slice(memories[rank].offset, memories[rank].bytes));
  }
  return all;
}

void ReceiveBuffers::give_back(Region memory) noexcept {
  std::erase_if(more_, [&](const Region& each) { return each.data == memory.data; });
  peers_.arena(gpu_).give_back(memory);
}

// Closes the others' separate memories before they hear of it: then they return them to the GPU.
void ReceiveBuffers::leave(Stream& stream) noexcept {
  if (gone_ || !in_use_) return;
  gone_ = true;
  opened_apart_.clear();
  try {
    constexpr std::uint64_t left = 1;
    for (const auto& [rank, opened] : opened_)
      stream.write_value(opened.slice.slice(static_cast<Bytes>(rank_) * sizeof left, sizeof left), left);
    stream.synchronize(Deadline::in(last_words));
  } catch (const Error&) {
  }
  const auto others = static_cast<int>(opened_.size());
  opened_.clear();
  peers_.arena(gpu_).leave(slice_, others, std::move(more_));
}

void ReceiveBuffers::let_go() noexcept {
  gone_ = true;
  opened_apart_.clear();
  opened_.clear();
}

}  // namespace waywiser
