#pragma once

#include <functional>

#include "waywiser/heap/device/team.hpp"
#include "waywiser/heap/device/terms.hpp"

namespace waywiser::one_sided {

// A call that the host has enqueued.
struct StreamCall {
  enum class Kind : std::uint32_t { put, signal, wait, wait_and_take, barrier };

  Kind kind = Kind::signal;
  HeapTerms terms;
  TeamTerms team;                       // of a barrier
  const std::byte* data = nullptr;      // of a put by the proxy
  std::uint64_t offset = 0, value = 0;  // the bytes of a put
  SignalOp op = SignalOp::set;
  Comparison comparison = Comparison::eq;
  int rank = any_rank;
};

// By one block.
template <typename Gpu>
WAYWISER_DEVICE void run_stream_call(Gpu& gpu, const StreamCall& call) {
  const OneSided<Gpu> ranks(gpu, call.terms);
  if (call.kind == StreamCall::Kind::barrier) return Team<Gpu>(ranks, call.team).barrier();
  if (call.kind == StreamCall::Kind::put)
    return ranks.template put<Scope::block>(ranks.template at<std::byte>(call.offset), call.data, call.value,
                                            call.rank);
  auto* word = ranks.template at<std::uint64_t>(call.offset);
  if (call.kind == StreamCall::Kind::signal)
    return ranks.template put_with_signal<Scope::block>(word, word, 0, word, call.value, call.op, call.rank);
  ranks.template wait_until<Scope::block>(word, call.comparison, call.value, call.rank);
  if (call.kind == StreamCall::Kind::wait_and_take && gpu.index_in(Scope::block) == 0)
    ranks.atomic_add(word, ~call.value + 1, ranks.rank());
}

// Enqueues it on a cudaStream_t of the current device; empty in a build without CUDA.
std::function<void(void* cuda_stream)> cuda_launcher(const StreamCall& call);

}  // namespace waywiser::one_sided
