#include "waywiser/collective/fused/fused_works.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser::fused {
namespace {

constexpr unsigned most_threads = 512;

constexpr Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

bool scattered(Collective operation) {
  return operation == Collective::reduce_scatter || operation == Collective::all_to_all;
}
bool reduced(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce ||
         operation == Collective::reduce_scatter;
}

bool is_exact(const FusedWork& work, Method method) {
  const auto address = reinterpret_cast<std::uintptr_t>(work.input) | reinterpret_cast<std::uintptr_t>(work.output);
  const Bytes word = method == Method::ll ? sizeof(block::Word8) : sizeof(Vector16);
  return (address | work.bytes | work.total | work.stride) % word == 0;
}

}  // namespace

std::optional<std::string> why_no_kernel(const CollectiveCall& call) {
  switch (call.operation) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::broadcast: break;
    default: return "there is no fused kernel for " + std::string(name(call.operation));
  }
  if (!call.counts.empty()) return "fused kernels are for blocks of one size";
  if (!is_arithmetic(call.as.op)) return "there is no kernel for " + std::string(name(call.as.op));
  return {};
}

KernelShape within(KernelShape shape, unsigned blocks) {
  return shape.blocks <= blocks ? shape : KernelShape{shape.method, blocks, most_threads};
}

bool has_method(Collective operation, Method method) {
  switch (method) {
    case Method::two_shot:
      return operation == Collective::all_reduce || operation == Collective::reduce ||
             operation == Collective::broadcast;
    case Method::two_shot_ll128: return operation == Collective::all_reduce;
    case Method::ll128: return operation != Collective::broadcast && operation != Collective::reduce;
    default: return true;
  }
}

void check_shape(const CollectiveCall& call, const KernelShape& shape) {
  if (shape.blocks == 0 || shape.blocks > most_blocks || shape.threads < block::max_ranks ||
      shape.threads > most_threads)
    throw Error(ErrorKind::invalid_input, "fused kernel: " + std::to_string(shape.blocks) + " blocks of " +
                                              std::to_string(shape.threads) + " threads are out of range");
  if (!has_method(call.operation, shape.method))
    throw Error(ErrorKind::invalid_input, "fused kernel: " + std::string(name(shape.method)) + " is no method of " +
                                              std::string(name(call.operation)));
  if (is_ll128(shape.method) && shape.threads % 32 != 0)
    throw Error(ErrorKind::invalid_input, "fused kernel: " + std::string(name(shape.method)) +
                                              " needs whole warps, not " + std::to_string(shape.threads) + " threads");
}

std::size_t input_blocks(const CollectiveCall& call) {
  if (call.operation == Collective::broadcast) return call.rank == call.root ? 1 : 0;
  return scattered(call.operation) ? static_cast<std::size_t>(call.ranks) : 1;
}

std::size_t output_blocks(const CollectiveCall& call) {
  if (call.operation == Collective::reduce) return call.rank == call.root ? 1 : 0;
  const bool all = call.operation == Collective::all_gather || call.operation == Collective::all_to_all;
  return all ? static_cast<std::size_t>(call.ranks) : 1;
}

std::vector<FusedWork> works(const CollectiveCall& call, DataType type, ReduceOp op, const Buffers& buffers,
                             Method method, Bytes most) {
  std::vector<FusedWork> all;
  const bool split = is_two_shot(method);
  for (Bytes at = 0; at < buffers.block; at += most) {
    const Bytes bytes = std::min(most, buffers.block - at);
    FusedWork work{buffers.input == nullptr ? nullptr : buffers.input + at,
                   buffers.output == nullptr ? nullptr : buffers.output + at,
                   bytes,
                   0,
                   buffers.block,
                   split || scattered(call.operation),
                   false,
                   split,
                   reduced(call.operation),
                   op,
                   type,
                   call.operation == Collective::broadcast ? call.root : -1,
                   call.operation == Collective::reduce ? call.root : -1,
                   buffers.slot,
                   buffers.description,
                   block::signature_of(buffers.description)};
    if (split) {
      work.bytes = round_up((bytes + static_cast<Bytes>(call.ranks) - 1) / static_cast<Bytes>(call.ranks), 16);
      work.stride = work.bytes;
      work.total = bytes;
    }
    work.exact = is_exact(work, method);
    all.push_back(work);
  }
  return all;
}

Method default_method(const CollectiveCall& call, Bytes block, bool ll128) {
  const Bytes ranks = static_cast<Bytes>(call.ranks), sent = block * (ranks - 1);
  const bool is_broadcast = call.operation == Collective::broadcast;  // between two ranks one shot sends least
  const bool split = has_method(call.operation, Method::two_shot) && !(is_broadcast && call.ranks == 2);
  if (ll128 && sent > defaults::fused_ll128_from && has_method(call.operation, Method::ll128)) {
    if (sent <= defaults::fused_ll128_one_shot) return Method::ll128;
    if (split && block <= defaults::fused_ll128) return Method::two_shot_ll128;
    if (!split && block * ranks <= defaults::fused_ll128) return Method::ll128;
  }
  if (sent <= defaults::fused_ll) return Method::ll;
  const Bytes most_in_one_shot = call.ranks == 2 ? defaults::fused_one_shot_of_two : defaults::fused_one_shot;
  return split && sent > most_in_one_shot ? Method::two_shot : Method::one_shot;
}

// LL and LL128 use many small blocks; pushes use blocks of 256 threads with two vectors each. Lines are fastest if each
// thread has just one pair, until the GPU is full.
KernelShape default_shape(const CollectiveCall& call, Bytes block, Method method, int multiprocessors) {
  const auto shape = [&](Bytes units, Bytes each, Bytes threads, Bytes most) {
    return KernelShape{method, static_cast<unsigned>(std::clamp<Bytes>((units + each - 1) / each, 1, most)),
                       static_cast<unsigned>(threads)};
  };
  const Bytes part = is_two_shot(method) ? block / static_cast<Bytes>(call.ranks) : block;
  if (method == Method::ll) {
    const Bytes units = (block + 7) / 8, threads = std::clamp<Bytes>(round_up((units + 127) / 128, 32), 32, 512);
    return shape(units, threads, threads, defaults::fused_ll_blocks);
  }
  if (is_ll128(method)) {
    const Bytes pairs = block::pairs_for(part), narrow = defaults::fused_ll128_narrow;
    const Bytes threads = pairs <= narrow ? 64 : pairs <= 4 * narrow ? 128 : 256;
    const Bytes each = threads / block::lanes_of_pair;
    if (method == Method::ll128) return shape(pairs, each, threads, defaults::fused_ll128_one_shot_blocks);
    const auto gpu = static_cast<Bytes>(multiprocessors);
    const Bytes most_blocks_at_once = std::min<Bytes>(defaults::fused_ll128_blocks * gpu, most_blocks);
    const Bytes long_blocks = std::clamp<Bytes>(defaults::fused_ll128_long_blocks * gpu / 132, 1, most_blocks);
    if (pairs <= each * most_blocks_at_once) return shape(pairs, each, threads, most_blocks_at_once);
    if (call.ranks == 2 && pairs <= 2 * each * most_blocks_at_once) return shape(pairs, 2 * each, threads, long_blocks);
    return {method, static_cast<unsigned>(long_blocks), static_cast<unsigned>(threads)};
  }
  constexpr Bytes threads = defaults::fused_push_threads;
  const bool in_two_shots = method == Method::two_shot;
  const Bytes vectors = in_two_shots ? (block + 15) / 16 / static_cast<Bytes>(call.ranks) : (block + 15) / 16;
  if (in_two_shots && 16 * vectors * static_cast<Bytes>(call.ranks - 1) > defaults::fused_two_shot_long)
    return {method, static_cast<unsigned>(defaults::fused_two_shot_long_blocks), static_cast<unsigned>(threads)};
  return shape(vectors, 2 * threads, threads,
               in_two_shots ? defaults::fused_two_shot_blocks : defaults::fused_one_shot_blocks);
}

}  // namespace waywiser::fused
