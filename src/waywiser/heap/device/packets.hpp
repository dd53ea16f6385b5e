#pragma once

#include "waywiser/heap/device/transfers.hpp"
#include "waywiser/kernels/block/ll_packet.hpp"
#include "waywiser/kernels/block/word_access.hpp"

namespace waywiser::one_sided {

// Packets of 16 bytes that hold so many bytes.
WAYWISER_DEVICE constexpr std::uint64_t packets_of(std::uint64_t bytes) { return (bytes + 7) / 8; }

// Packets that a thread has under way at once.
inline constexpr unsigned packet_batch = 4;

// Whether each thread has one packet or none, of a whole word: a quick way for few bytes, with little between a word
// and the link.
WAYWISER_DEVICE inline bool is_word_each(const void* data, std::uint64_t bytes, std::uint64_t threads) {
  return (reinterpret_cast<std::uintptr_t>(data) | bytes) % sizeof(block::Word8) == 0 &&
         bytes / sizeof(block::Word8) <= threads;
}

// By threads of a scope that have joined: each 8 bytes travel with their flag in one store.
template <Scope scope, typename Gpu, typename T>
WAYWISER_DEVICE void store_packets(Gpu& gpu, block::LlPacket* to, const T* source, std::uint64_t count,
                                   std::uint64_t number) {
  const std::uint64_t bytes = count * sizeof(T), all = packets_of(bytes), apart = gpu.count_of(scope);
  if (is_word_each(source, bytes, apart)) {
    if (const unsigned mine = gpu.index_in(scope); mine < all)
      gpu.store_packet(to + mine, reinterpret_cast<const block::Word8*>(source)[mine], number);
    return;
  }
  for (std::uint64_t first = gpu.index_in(scope); first < all; first += apart * packet_batch) {
    block::Word8 words[packet_batch] = {};
    WAYWISER_UNROLL
    for (unsigned i = 0; i < packet_batch; ++i)
      if (first + i * apart < all)
        words[i] =
            block::load_word<block::Word8, false>(reinterpret_cast<const std::byte*>(source), bytes, first + i * apart);
    WAYWISER_UNROLL
    for (unsigned i = 0; i < packet_batch; ++i)
      if (first + i * apart < all) gpu.store_packet(to + first + i * apart, words[i], number);
  }
}

// A put by the LL protocol, for few bytes, in which nothing waits for earlier ones. They go to packets at a rank,
// packets_of(bytes) of them, and wait_packets() there takes them out. The number, from 1, differs from all earlier ones
// in these packets. Before the next put into them the receiver must have taken these.
template <Scope scope = Scope::thread, typename Gpu, typename T>
WAYWISER_DEVICE void put_packets(const Transfers<Gpu>& ranks, block::LlPacket* packets, const T* source,
                                 std::uint64_t count, std::uint64_t number, int rank) {
  const std::uint64_t bytes = count * sizeof(T), all = packets_of(bytes);
  if (ranks.is_proxied(rank)) {
    ProxyRequest request;
    request.rank = rank;
    request.move = ProxyMove::packets;
    request.offset = ranks.checked_offset(packets, all, rank);
    request.count = bytes;
    request.apart = sizeof(block::LlPacket) / sizeof(block::Word8);  // bytes at the other rank for each that is put
    request.value = number;
    if (bytes != 0)
      put_by_proxy<scope, Gpu>({ranks.gpu(), ranks.terms()}, request, reinterpret_cast<const std::byte*>(source), 1);
    return;
  }
  block::LlPacket* to = ranks.place(packets, all, rank);
  Gpu& gpu = ranks.gpu();
  gpu.join(scope);
  store_packets<scope>(gpu, to, source, count, number);
  gpu.join(scope);
}

// Waits for packets in this rank's memory and stores their elements. `from`: the rank that puts them, for the error.
template <Scope scope = Scope::thread, typename Gpu, typename T>
WAYWISER_DEVICE void wait_packets(const Transfers<Gpu>& ranks, T* destination, const block::LlPacket* packets,
                                  std::uint64_t count, std::uint64_t number, int from = any_rank) {
  const std::uint64_t bytes = count * sizeof(T), all = packets_of(bytes);
  Gpu& gpu = ranks.gpu();
  gpu.join(scope);
  const std::uint64_t apart = gpu.count_of(scope);
  if (is_word_each(destination, bytes, apart)) {
    if (const unsigned mine = gpu.index_in(scope); mine < all) {
      block::LlPacket taken = {};
      ranks.wait(
          [&] {
            taken = gpu.load_packet(packets + mine);
            return taken.is_of(number);
          },
          [&] {
            ranks.stop_late(&packets[mine].number, Comparison::eq, static_cast<std::uint32_t>(number), taken.number,
                            from);
          });
      reinterpret_cast<block::Word8*>(destination)[mine] = block::Word8{{taken.low, taken.high}};
    }
    gpu.join(scope);
    return;
  }
  for (std::uint64_t first = gpu.index_in(scope); first < all; first += apart * packet_batch) {
    block::LlPacket taken[packet_batch] = {};
    std::uint64_t late = first;  // the first that has not come
    std::uint32_t late_number = 0;
    ranks.wait(
        [&] {
          WAYWISER_UNROLL
          for (unsigned i = 0; i < packet_batch; ++i)
            if (first + i * apart < all) taken[i] = gpu.load_packet(packets + first + i * apart);
          bool all_there = true;
          WAYWISER_UNROLL
          for (unsigned i = packet_batch; i-- > 0;) {
            if (first + i * apart >= all || taken[i].is_of(number)) continue;
            all_there = false;
            late = first + i * apart;
            late_number = taken[i].number;
          }
          return all_there;
        },
        [&] {
          ranks.stop_late(&packets[late].number, Comparison::eq, static_cast<std::uint32_t>(number), late_number, from);
        });
    WAYWISER_UNROLL
    for (unsigned i = 0; i < packet_batch; ++i)
      if (first + i * apart < all)
        block::store_word<false>(reinterpret_cast<std::byte*>(destination), bytes, first + i * apart,
                                 block::Word8{{taken[i].low, taken[i].high}});
  }
  gpu.join(scope);
}

}  // namespace waywiser::one_sided
