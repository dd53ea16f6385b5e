#pragma once

#include "waywiser/heap/device/transfers.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::one_sided {

// Packets of 16 bytes that hold so many bytes.
WAYWISER_DEVICE constexpr std::uint64_t packets_of(std::uint64_t bytes) { return (bytes + 7) / 8; }

// A put by the LL protocol, for few bytes: each 8 bytes travel with their flag in one store, and nothing waits for
// earlier ones. They go to packets at a rank, packets_of(bytes) of them, and wait_packets() there takes them out. The
// number, from 1, differs from all earlier ones in these packets. Before the next put into them the receiver must have
// taken these.
template <Scope scope = Scope::thread, typename Gpu, typename T>
WAYWISER_DEVICE void put_packets(const Transfers<Gpu>& ranks, block::LlPacket* packets, const T* source,
                                 std::uint64_t count, std::uint64_t number, int rank) {
  const std::uint64_t bytes = count * sizeof(T), all = packets_of(bytes);
  block::LlPacket* to = ranks.place(packets, all, rank);
  Gpu& gpu = ranks.gpu();
  gpu.join(scope);
  for (std::uint64_t i = gpu.index_in(scope); i < all; i += gpu.count_of(scope))
    gpu.store_packet(
        to + i, block::load_word<block::Word8, false>(reinterpret_cast<const std::byte*>(source), bytes, i), number);
  gpu.join(scope);
}

// Waits for packets in this rank's memory and stores their elements. `from`: the rank that puts them, for the error.
template <Scope scope = Scope::thread, typename Gpu, typename T>
WAYWISER_DEVICE void wait_packets(const Transfers<Gpu>& ranks, T* destination, const block::LlPacket* packets,
                                  std::uint64_t count, std::uint64_t number, int from = any_rank) {
  const std::uint64_t bytes = count * sizeof(T), all = packets_of(bytes);
  Gpu& gpu = ranks.gpu();
  gpu.join(scope);
  for (std::uint64_t i = gpu.index_in(scope); i < all; i += gpu.count_of(scope)) {
    block::LlPacket packet{};
    ranks.wait(
        [&] {
          packet = gpu.load_packet(packets + i);
          return packet.is_of(number);
        },
        [&] {
          ranks.stop_late(&packets[i].number, Comparison::eq, static_cast<std::uint32_t>(number), packet.number, from);
        });
    block::store_word<false>(reinterpret_cast<std::byte*>(destination), bytes, i,
                             block::Word8{{packet.low, packet.high}});
  }
  gpu.join(scope);
}

}  // namespace waywiser::one_sided
