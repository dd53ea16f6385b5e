#pragma once

#include <functional>

#include "waywiser/heap/device/messages.hpp"
#include "waywiser/heap/device/team.hpp"

namespace waywiser::one_sided {

// What a timed kernel does `calls` times. A heap has a word for signals and one for atomics, and `bytes` at data_at.
struct KernelCalls {
  enum class Kind : std::uint32_t { put, get, signal, atomics, barrier, message };
  static constexpr std::uint64_t signal_at = 0, atomics_at = 256, data_at = 4096;

  Kind kind = Kind::put;
  HeapTerms terms;
  TeamTerms team;             // all ranks
  std::byte* data = nullptr;  // what rank 0 puts, or gets
  std::uint64_t bytes = 0;
  Inbox inbox;                         // of messages
  std::uint64_t first = 1, calls = 1;  // numbers of signals; they go on from kernel to kernel
};

// Rank 0 puts a message, which rank 1 puts back; by one block of each.
template <typename Gpu>
WAYWISER_DEVICE void pass_messages(const OneSided<Gpu>& ranks, const KernelCalls& task) {
  const int rank = ranks.rank(), other = 1 - rank;
  if (rank > 1 || ranks.gpu().block() != 0) return;
  auto* taken = ranks.template at<std::byte>(KernelCalls::data_at);
  for (std::uint64_t number = task.first; number < task.first + task.calls; ++number) {
    if (rank == 0) put_message<Scope::block>(ranks, task.inbox, taken, task.data, task.bytes, number, other);
    wait_message<Scope::block>(ranks, task.inbox, taken, task.bytes, number, other);
    if (rank == 1) put_message<Scope::block>(ranks, task.inbox, taken, taken, task.bytes, number, other);
  }
}

// Rank 0 puts into rank 1 and waits until the bytes are there, gets from it, or adds to its word; the two signal each
// other in turn, or pass messages; all ranks meet. By all blocks of a kernel, each with its part of the bytes.
template <typename Gpu>
WAYWISER_DEVICE void make_kernel_calls(Gpu& gpu, const KernelCalls& task) {
  using Kind = KernelCalls::Kind;
  const OneSided<Gpu> ranks(gpu, task.terms);
  const int rank = ranks.rank();
  if (task.kind == Kind::barrier) {
    const Team<Gpu> team(ranks, task.team);
    for (std::uint64_t i = 0; i < task.calls; ++i) team.barrier();
    return;
  }
  const bool leads = gpu.block() == 0 && gpu.index_in(Scope::block) == 0;
  auto* signal = ranks.template at<std::uint64_t>(KernelCalls::signal_at);
  if (task.kind == Kind::signal) {
    if (!leads || rank > 1) return;
    for (std::uint64_t number = task.first; number < task.first + task.calls; ++number) {
      if (rank == 0) ranks.signal_set(signal, number, 1);
      ranks.wait_until(signal, Comparison::ge, number, 1 - rank);
      if (rank == 1) ranks.signal_set(signal, number, 0);
    }
    return;
  }
  if (task.kind == Kind::message) return pass_messages(ranks, task);
  if (rank != 0) return;
  if (task.kind == Kind::atomics) {
    auto* word = ranks.template at<std::uint64_t>(KernelCalls::atomics_at);
    if (!leads || task.calls == 0) return;
    const std::uint64_t first = ranks.atomic_fetch_add(word, 1, 1);
    // Each call adds 1, computed from what the one before has fetched: without need of it, nothing would be waited for.
    std::uint64_t seen = first;
    for (std::uint64_t i = 1; i < task.calls; ++i) seen = ranks.atomic_fetch_add(word, seen - first - i + 2, 1);
    return;
  }
  const auto part = [&](std::uint64_t block) {
    return block == gpu.blocks() ? task.bytes : task.bytes / 16 * block / gpu.blocks() * 16;
  };
  const std::uint64_t begin = part(gpu.block()), count = part(gpu.block() + 1) - begin;
  auto* there = ranks.template at<std::byte>(KernelCalls::data_at) + begin;
  for (std::uint64_t i = 0; i < task.calls; ++i) {
    if (task.kind == Kind::get)
      ranks.template get<Scope::block>(task.data + begin, there, count, 1);
    else
      ranks.template put<Scope::block>(there, task.data + begin, count, 1);
    ranks.template quiet<Scope::block>();  // a put is complete, and the next get finds no old values in a cache
  }
}

// So many blocks share the link best, and fewer where each has little: docs/lab/gpu-one-sided.md.
constexpr unsigned kernel_blocks(std::uint64_t bytes) {
  const std::uint64_t wanted = bytes / (8 << 10);
  return wanted < 1 ? 1 : wanted > 16 ? 16 : static_cast<unsigned>(wanted);
}

// Enqueues it on a cudaStream_t of the current device; empty in a build without CUDA.
std::function<void(void* cuda_stream)> cuda_launcher(const KernelCalls& task);

}  // namespace waywiser::one_sided
