#pragma once

#include <functional>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/heap/device/team.hpp"
#include "waywiser/heap/device/terms.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser::one_sided {

// A collective call of a team that the host has enqueued; `type` is of the elements to be reduced.
struct StreamTeamCall {
  enum class Kind : std::uint32_t { broadcast, all_gather, all_to_all, reduce };

  Kind kind = Kind::broadcast;
  HeapTerms terms;
  TeamTerms team;
  std::uint64_t destination = 0, source = 0, count = 0;  // offsets; bytes, or elements to be reduced
  DataType type = DataType::uint8;
  TeamOp op = TeamOp::sum;
  int root = 0;
};

template <typename T, typename Gpu>
WAYWISER_DEVICE void reduce_on_stream(const OneSided<Gpu>& ranks, const StreamTeamCall& call) {
  Team<Gpu>(ranks, call.team)
      .reduce(ranks.template at<T>(call.destination), ranks.template at<T>(call.source), call.count, call.op);
}

// By one block.
template <typename Gpu>
WAYWISER_DEVICE void run_stream_team_call(Gpu& gpu, const StreamTeamCall& call) {
  const OneSided<Gpu> ranks(gpu, call.terms);
  const Team<Gpu> team(ranks, call.team);
  auto* destination = ranks.template at<std::byte>(call.destination);
  const auto* source = ranks.template at<std::byte>(call.source);
  switch (call.kind) {
    case StreamTeamCall::Kind::broadcast: return team.broadcast(destination, source, call.count, call.root);
    case StreamTeamCall::Kind::all_gather: return team.all_gather(destination, source, call.count);
    case StreamTeamCall::Kind::all_to_all: return team.all_to_all(destination, source, call.count);
    case StreamTeamCall::Kind::reduce: break;
  }
  switch (call.type) {
    case DataType::float64: return reduce_on_stream<double>(ranks, call);
    case DataType::float32: return reduce_on_stream<float>(ranks, call);
    case DataType::float16: return reduce_on_stream<Float16>(ranks, call);
    case DataType::bfloat16: return reduce_on_stream<Bfloat16>(ranks, call);
    case DataType::int8: return reduce_on_stream<std::int8_t>(ranks, call);
    case DataType::int16: return reduce_on_stream<std::int16_t>(ranks, call);
    case DataType::int32: return reduce_on_stream<std::int32_t>(ranks, call);
    case DataType::int64: return reduce_on_stream<std::int64_t>(ranks, call);
    case DataType::uint8: return reduce_on_stream<std::uint8_t>(ranks, call);
    case DataType::uint16: return reduce_on_stream<std::uint16_t>(ranks, call);
    case DataType::uint32: return reduce_on_stream<std::uint32_t>(ranks, call);
    case DataType::uint64: return reduce_on_stream<std::uint64_t>(ranks, call);
    default: return;  // the host has refused it
  }
}

// Enqueues it on a cudaStream_t of the current device; empty in a build without CUDA.
std::function<void(void* cuda_stream)> cuda_launcher(const StreamTeamCall& call);

}  // namespace waywiser::one_sided
