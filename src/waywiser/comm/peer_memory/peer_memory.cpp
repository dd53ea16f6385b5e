#include "waywiser/comm/peer_memory/peer_memory.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Beyond the first limit, or beyond the other two, the cache forgets the memory that was used least recently.
constexpr std::size_t most_known = 256, always_known = 16;
constexpr Bytes most_bytes_known = Bytes{1} << 30;

// The result of `open`, or why this process cannot use the memory.
template <typename Open>
std::shared_ptr<const Memory> opened(std::string_view gpu, Open open) {
  try {
    return std::make_shared<const Memory>(open());
  } catch (const Error& error) {
    throw Error(error.kind(), "the memory of another rank on GPU " + std::string(gpu) + ": " + error.what());
  }
}

}  // namespace

PeerMemory::Known& PeerMemory::known(const SharedRegion& shared, Place user) {
  Known& known = known_[{shared.process, shared.address, user.index}];
  known.used = ++uses_;
  return known;
}

std::shared_ptr<const Memory> PeerMemory::open(Known& known, const SharedRegion& shared, Place user) {
  if (auto memory = known.memory.lock();
      memory && known.opaque == shared.opaque && memory->region().bytes >= shared.allocation_bytes)
    return memory;
  known.kept.reset();  // its owner has freed it, or a larger part is wanted
  auto memory = opened(shared.identity(), [&] { return platform_.open_shared(shared, user); });
  known.memory = memory;
  known.opaque = shared.opaque;
  return memory;
}

std::shared_ptr<const Memory> PeerMemory::open(const SharedRegion& shared, Place user) {
  std::erase_if(known_, [](const auto& each) { return each.second.memory.expired(); });
  return open(known(shared, user), shared, user);
}

PeerMemory::Part PeerMemory::open_and_keep(const SharedRegion& shared, Place user) {
  Known& known = this->known(shared, user);
  known.kept = open(known, shared, user);
  Part part{known.kept, known.kept->region().slice(shared.offset, shared.bytes)};
  while (keeps_too_much()) forget_oldest();
  return part;
}

bool PeerMemory::keeps_too_much() const {
  if (known_.size() <= always_known) return false;
  if (known_.size() > most_known) return true;
  Bytes bytes = 0;
  for (const auto& [key, known] : known_)
    if (known.kept) bytes += known.kept->region().bytes;
  return bytes > most_bytes_known;
}

void PeerMemory::forget_oldest() {
  known_.erase(
      std::ranges::min_element(known_, [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

void PeerMemory::forget() noexcept {
  for (auto& [key, known] : known_) known.kept.reset();
}

ReceiveArena& PeerMemory::arena(Place gpu) {
  std::unique_ptr<ReceiveArena>& arena = arenas_[gpu];
  if (!arena) arena = std::make_unique<ReceiveArena>(platform_, gpu, timeout_);
  return *arena;
}

void PeerMemory::close() noexcept {
  forget();
  for (const auto& [gpu, arena] : arenas_) arena->close();
}

}  // namespace waywiser
