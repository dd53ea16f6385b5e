#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/device_code.hpp"

namespace waywiser::one_sided {

// A bulk copy has so many pieces under way, each in a stage of the memory between; the stages' barriers come first.
inline constexpr unsigned bulk_stages = 4, bulk_barriers = 128, least_staging = bulk_barriers + bulk_stages * 128;

WAYWISER_DEVICE constexpr unsigned bulk_piece_of(unsigned staging) {
  return staging < least_staging ? 0 : (staging - bulk_barriers) / bulk_stages / 128 * 128;
}

// A piece is loaded into a stage and stored from there; what load() and store() begin is over when a wait says so.
// Addresses and bytes are multiples of 16. By one thread. `Bulk`: HostBulk, CudaBulk.
template <typename Bulk>
WAYWISER_DEVICE void bulk_copy(const Bulk& bulk, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const std::uint64_t piece = bulk.piece(), pieces = (bytes + piece - 1) / piece;
  const auto length = [&](std::uint64_t i) {
    return static_cast<unsigned>(bytes - i * piece < piece ? bytes - i * piece : piece);
  };
  const auto load = [&](std::uint64_t i) {
    bulk.load(static_cast<unsigned>(i % bulk_stages), from + i * piece, length(i));
  };
  bulk.begin();
  for (std::uint64_t i = 0; i < bulk_stages && i < pieces; ++i) load(i);
  for (std::uint64_t i = 0; i < pieces; ++i) {
    const auto stage = static_cast<unsigned>(i % bulk_stages);
    bulk.wait_loaded(stage, static_cast<unsigned>(i / bulk_stages));
    bulk.store(stage, to + i * piece, length(i));
    if (i == 0 || i - 1 + bulk_stages >= pieces) continue;
    bulk.wait_read_but_newest();  // the stage of the store before is free
    load(i - 1 + bulk_stages);
  }
  bulk.wait_stored();
  bulk.end();
}

// A put by a block: all of its threads, which join at the beginning and the end. False, and nothing is done: without
// memory between, or if the addresses do not lie alike.
template <typename Gpu>
WAYWISER_DEVICE bool give_in_bulk(Gpu& gpu, std::byte* to, const std::byte* from, std::uint64_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(to);
  const std::uint64_t head = (16 - at % 16) % 16;
  if (!gpu.has_bulk() || (at ^ reinterpret_cast<std::uintptr_t>(from)) % 16 != 0 || bytes < head + 16) return false;
  const std::uint64_t middle = (bytes - head) / 16 * 16, tail = head + middle;
  gpu.order_bulk();
  gpu.join(Scope::block);
  if (gpu.index_in(Scope::block) == 0) bulk_copy(gpu.bulk(), to + head, from + head, middle);
  gpu.give(Scope::block, to, from, head);
  gpu.give(Scope::block, to + tail, from + tail, bytes - tail);
  gpu.join(Scope::block);
  return true;
}

}  // namespace waywiser::one_sided
