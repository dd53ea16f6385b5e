#pragma once

#include <functional>

#include "waywiser/heap/device/packets.hpp"

namespace waywiser::one_sided {

// In host memory: an access that has come from another rank, with what it puts or, afterwards, what it gets.
struct alignas(64) ProxyArrival {
  ProxyRequest request;
  std::uint64_t result = 0;
  alignas(64) std::byte piece[proxy_piece];
};

// Accesses to the memory of this rank, which its GPU carries out in this order. Addresses as the GPU reaches them.
struct Delivery {
  std::byte* memory = nullptr;
  ProxyArrival* const* arrivals = nullptr;
  std::uint32_t count = 0;
};

template <typename Word, typename Gpu>
WAYWISER_DEVICE Word do_on_bits(Gpu& gpu, Word* word, const ProxyRequest& request) {
  const auto value = static_cast<Word>(request.value);
  switch (request.op) {
    case WordOp::add: return gpu.fetch_add(word, value);
    case WordOp::swap: return gpu.exchange(word, value);
    case WordOp::compare_swap: return gpu.compare_exchange(word, static_cast<Word>(request.expected), value);
    case WordOp::bit_and: return gpu.fetch_and(word, value);
    case WordOp::bit_or: return gpu.fetch_or(word, value);
    case WordOp::bit_xor: return gpu.fetch_xor(word, value);
    case WordOp::set: gpu.write(word, value); return value;
    default: return gpu.read(word);
  }
}

template <typename Gpu>
WAYWISER_DEVICE std::uint64_t do_on_word(Gpu& gpu, std::byte* at, const ProxyRequest& request) {
  if (request.op == WordOp::add && request.type == WordType::float32)
    return word_bits(gpu.fetch_add(reinterpret_cast<float*>(at), word_of_bits<float>(request.value)));
  if (request.op == WordOp::add && request.type == WordType::float64)
    return word_bits(gpu.fetch_add(reinterpret_cast<double*>(at), word_of_bits<double>(request.value)));
  if (request.type == WordType::bits32 || request.type == WordType::float32)
    return do_on_bits(gpu, reinterpret_cast<std::uint32_t*>(at), request);
  return do_on_bits(gpu, reinterpret_cast<std::uint64_t*>(at), request);
}

template <typename Gpu>
WAYWISER_DEVICE void move_elements(Gpu& gpu, std::byte* there, ProxyArrival& arrival) {
  const ProxyRequest& request = arrival.request;
  if (request.move == ProxyMove::packets) {
    auto* packets = reinterpret_cast<block::LlPacket*>(there);
    for (std::uint64_t i = gpu.index_in(Scope::block); i < packets_of(request.count); i += gpu.count_of(Scope::block))
      gpu.store_packet(packets + i, block::load_word<block::Word8, false>(arrival.piece, request.count, i),
                       request.value);
    return;
  }
  const bool puts = request.move == ProxyMove::put;
  if (request.apart == request.element)
    return puts ? gpu.give(Scope::block, there, arrival.piece, request.bytes())
                : gpu.take(Scope::block, arrival.piece, there, request.bytes());
  for (std::uint64_t i = gpu.index_in(Scope::block); i < request.count; i += gpu.count_of(Scope::block)) {
    std::byte *far = there + i * request.apart, *here = arrival.piece + i * request.element;
    puts ? gpu.give(Scope::thread, far, here, request.element) : gpu.take(Scope::thread, here, far, request.element);
  }
}

// By one block. What comes earlier is seen first.
template <typename Gpu>
WAYWISER_DEVICE void deliver(Gpu& gpu, const Delivery& delivery) {
  for (std::uint32_t i = 0; i < delivery.count; ++i) {
    ProxyArrival& arrival = *delivery.arrivals[i];
    const ProxyRequest& request = arrival.request;
    if (request.count != 0) move_elements(gpu, delivery.memory + request.offset, arrival);
    gpu.join(Scope::block);
    if (gpu.index_in(Scope::block) == 0) {
      gpu.fence();
      if (request.op != WordOp::none) arrival.result = do_on_word(gpu, delivery.memory + request.word, request);
      gpu.fence();
    }
    gpu.join(Scope::block);
  }
}

// Enqueues it on a cudaStream_t of the current device; empty in a build without CUDA.
std::function<void(void* cuda_stream)> cuda_launcher(const Delivery& delivery);

}  // namespace waywiser::one_sided
