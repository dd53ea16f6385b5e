#include "waywiser/collective/gpu/symmetric_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "waywiser/collective/fused/parts.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/policy/copy_defaults.hpp"

namespace waywiser {
namespace {

using on_stream::Description;

constexpr Bytes alignment = 4096;  // of the parts into which one array is cut

bool adds_up(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce_scatter;
}

// Part `index` of `parts` of an array.
struct Part {
  Part(Bytes whole, int index, int parts) {
    const auto number = static_cast<Bytes>(parts);
    const Bytes each = ((whole + number - 1) / number + alignment - 1) / alignment * alignment;
    begin = std::min(whole, static_cast<Bytes>(index) * each);
    bytes = std::min(each, whole - begin);
  }
  Bytes begin = 0, bytes = 0;
};

// Of the places that other ranks read or write; each word is mixed into all bits (the finaliser of MurmurHash3).
std::uint64_t hash_of(const CollectiveCall& call) {
  std::uint64_t hash = 0;
  const auto mix = [&](const SymmetricPlace& place) {
    for (const std::uint64_t word : {std::uint64_t{place.slot}, place.offset}) {
      hash = (hash ^ word) * 0xff51afd7ed558ccdu;
      hash ^= hash >> 33;
    }
  };
  if (adds_up(call.operation)) mix(call.symmetric_input);
  if (call.operation != Collective::reduce_scatter) mix(call.symmetric_output);
  return hash;
}

}  // namespace

SymmetricEngine::SymmetricEngine(Session& session, KernelEngine& kernels, StreamOrder& order,
                                 const ExposedMemory& exposed)
    : session_(session), kernels_(kernels), order_(order), exposed_(exposed) {}

std::string SymmetricEngine::why_not(const GpuAlgorithm&, const CollectiveCall& call) const {
  const KernelDomain& domain = kernels_.domain();
  if (!domain.is_whole()) return domain.why_not_whole().empty() ? "it is for several ranks" : domain.why_not_whole();
  if (domain.keeps_context())
    return "a failure is to keep the context of a GPU, where no kernel stops the copies behind it";
  switch (call.operation) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      if (!is_arithmetic(call.as.op)) return "there is no kernel for " + std::string(name(call.as.op));
      if (call.symmetric_input.slot == 0) return "the input is in no symmetric window";
      if (call.operation == Collective::reduce_scatter) return "";
      break;
    case Collective::all_gather:
    case Collective::all_to_all:
    case Collective::broadcast: break;
    default: return "there is no " + std::string(name(call.operation)) + " between symmetric arrays";
  }
  if (!call.counts.empty()) return "blocks have one size between symmetric arrays";
  return call.symmetric_output.slot == 0 ? "the output is in no symmetric window" : "";
}

bool SymmetricEngine::is_default_of(const CollectiveCall& call) const {
  if (call.symmetric_input.slot == 0 && call.symmetric_output.slot == 0) return false;
  const bool whole = call.operation == Collective::all_reduce || call.operation == Collective::broadcast;
  const Bytes least = whole ? defaults::symmetric_arrays : defaults::symmetric_blocks;
  return call.count * bytes_of(call.as.type) >= least && why_not({}, call).empty();
}

bool SymmetricEngine::prepare(const GpuAlgorithm&, const CollectiveCall&, bool capturing) {
  if (beside_) return true;
  if (capturing)
    throw Error(ErrorKind::unavailable,
                "the first call between symmetric arrays cannot be captured: make one of that size once before");
  Platform& platform = order_.platform();
  begin_ = platform.create_event(order_.gpu());
  end_ = platform.create_event(order_.gpu());
  sums_ = platform.create_launch_cache(order_.gpu());
  beside_ = platform.open_stream(order_.gpu());
  return true;
}

void SymmetricEngine::enqueue(const GpuAlgorithm&, const CollectiveCall& call, ConstRegion input, Region output,
                              Stream& stream) {
  const Session::ThreadRuns thread_runs(session_);
  meet(call, stream);
  if (call.operation == Collective::broadcast) {
    broadcast(call, output, stream);
  } else if (call.operation == Collective::all_reduce) {
    all_reduce(call, input, output, stream);
  } else if (call.operation == Collective::reduce_scatter) {
    const Bytes block = call.count * bytes_of(call.as.type);
    add_up(call, input, static_cast<Bytes>(call.rank) * block, output.slice(0, block), stream);
  } else {
    move_blocks(call, input, output, stream);
  }
  kernels_.nod({Description::places, DataType::uint8, ReduceOp::sum, -1, hash_of(call)}, call.ranks, stream);
}

void SymmetricEngine::meet(const CollectiveCall& call, Stream& stream) {
  Description as = on_stream::describe(call, call.as.type, call.as.op);
  as.cut = Description::symmetric;
  kernels_.nod(as, call.ranks, stream);
}

Region SymmetricEngine::at(int rank, const SymmetricPlace& array, Bytes offset, Bytes bytes) const {
  return exposed_.window(array.slot).ranks[static_cast<std::size_t>(rank)].slice(array.offset + offset, bytes);
}

// Each rank begins with the next one.
template <typename IsFor>
void SymmetricEngine::spread(const CollectiveCall& call, ConstRegion from, Bytes offset, Stream& stream,
                             IsFor is_for) const {
  for (int distance = 1; from.bytes != 0 && distance < call.ranks; ++distance)
    if (const int peer = (call.rank + distance) % call.ranks; is_for(peer))
      stream.copy(at(peer, call.symmetric_output, offset, from.bytes), from);
}

// Of all_gather and all_to_all.
void SymmetricEngine::move_blocks(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream) {
  const Bytes block = call.count * bytes_of(call.as.type), mine = static_cast<Bytes>(call.rank) * block;
  const auto given = [&](int rank) {
    return input.slice(call.operation == Collective::all_to_all ? static_cast<Bytes>(rank) * block : 0, block);
  };
  const ConstRegion own = given(call.rank);
  const bool keeps = own.data != output.data + mine;
  if (keeps) {
    stream.record(*begin_);
    beside_->wait(*begin_);
    beside_->copy(output.slice(mine, block), own);
    beside_->record(*end_);
  }
  for (int distance = 1; distance < call.ranks; ++distance) {
    const int peer = (call.rank + distance) % call.ranks;
    stream.copy(at(peer, call.symmetric_output, mine, block), given(peer));
  }
  if (keeps) stream.wait(*end_);
}

// More than two ranks share the work: the root gives each a part, which it passes on.
void SymmetricEngine::broadcast(const CollectiveCall& call, Region data, Stream& stream) {
  const Bytes bytes = call.count * bytes_of(call.as.type);
  const bool is_root = call.rank == call.root;
  if (call.ranks == 2) {
    if (is_root) spread(call, data.slice(0, bytes), 0, stream, [](int) { return true; });
    return;
  }
  const auto part_of = [&](int rank) { return Part(bytes, rank, call.ranks); };
  for (int rank = 0; is_root && rank < call.ranks; ++rank) {
    const Part part = part_of(rank);
    if (rank != call.root)
      spread(call, data.slice(part.begin, part.bytes), part.begin, stream, [&](int peer) { return peer == rank; });
  }
  meet(call, stream);
  const Part own = part_of(call.rank);
  spread(call, data.slice(own.begin, own.bytes), own.begin, stream, [&](int peer) { return peer != call.root; });
}

// Each rank adds up a part and gives it to all. Nobody else reads or writes there before: input and output may be one.
void SymmetricEngine::all_reduce(const CollectiveCall& call, ConstRegion input, Region output, Stream& stream) {
  const Part part(call.count * bytes_of(call.as.type), call.rank, call.ranks);
  const Region sum = output.slice(part.begin, part.bytes);
  add_up(call, input, part.begin, sum, stream);
  spread(call, sum, part.begin, stream, [](int) { return true; });
}

void SymmetricEngine::add_up(const CollectiveCall& call, ConstRegion input, Bytes offset, Region result,
                             Stream& stream) {
  if (result.bytes == 0) return;
  std::vector<ConstRegion> parts;
  for (int rank = 0; rank < call.ranks; ++rank)
    parts.push_back(rank == call.rank ? input.slice(offset, result.bytes)
                                      : ConstRegion(at(rank, call.symmetric_input, offset, result.bytes)));
  fused::add_up(stream, sums_.get(), parts, result, call.as.type, call.as.op);
}

}  // namespace waywiser
