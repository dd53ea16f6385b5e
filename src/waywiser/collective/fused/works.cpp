#include "waywiser/collective/fused/works.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"

namespace waywiser::fused {
namespace {

constexpr Bytes round_up(Bytes bytes, Bytes unit) { return (bytes + unit - 1) / unit * unit; }

bool scattered(Collective operation) {
  return operation == Collective::reduce_scatter || operation == Collective::all_to_all;
}
bool reduced(Collective operation) {
  return operation == Collective::all_reduce || operation == Collective::reduce ||
         operation == Collective::reduce_scatter;
}

bool is_exact(const Work& work, Method method) {
  const auto address = reinterpret_cast<std::uintptr_t>(work.input) | reinterpret_cast<std::uintptr_t>(work.output);
  const Bytes word = method == Method::packets ? sizeof(Word8) : sizeof(Vector16);
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
  return {};
}

bool has_method(Collective operation, Method method) {
  switch (method) {
    case Method::two_shot: return operation == Collective::all_reduce || operation == Collective::reduce;
    case Method::two_shot_lines: return operation == Collective::all_reduce;
    case Method::lines: return operation != Collective::broadcast && operation != Collective::reduce;
    default: return true;
  }
}

void check_shape(const CollectiveCall& call, const Shape& shape) {
  if (shape.blocks == 0 || shape.blocks > most_blocks || shape.threads < most_ranks || shape.threads > 512)
    throw Error(ErrorKind::invalid_input, "fused kernel: " + std::to_string(shape.blocks) + " blocks of " +
                                              std::to_string(shape.threads) + " threads are out of range");
  if (!has_method(call.operation, shape.method))
    throw Error(ErrorKind::invalid_input, "fused kernel: " + std::string(name(shape.method)) + " is no method of " +
                                              std::string(name(call.operation)));
  if (is_lines(shape.method) && shape.threads % 32 != 0)
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

std::vector<Work> works(const CollectiveCall& call, ReduceOp op, const Buffers& buffers, Method method, Bytes most) {
  std::vector<Work> all;
  const bool split = is_two_shot(method);
  for (Bytes at = 0; at < buffers.block; at += most) {
    const Bytes bytes = std::min(most, buffers.block - at);
    Work work{buffers.input == nullptr ? nullptr : buffers.input + at,
              buffers.output == nullptr ? nullptr : buffers.output + at,
              bytes,
              0,
              buffers.block,
              split || scattered(call.operation),
              false,
              split,
              reduced(call.operation),
              op,
              call.operation == Collective::broadcast ? call.root : -1,
              call.operation == Collective::reduce ? call.root : -1,
              buffers.slot};
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

// Measured on 4 x H200: packets in many small blocks, pushes in blocks of 256 threads with two vectors each.
Shape default_shape(const CollectiveCall& call, Bytes block, bool lines) {
  const Bytes sent = block * (static_cast<Bytes>(call.ranks) - 1);
  const auto blocks_for = [](Bytes units, Bytes each, Bytes most) {
    return static_cast<unsigned>(std::clamp<Bytes>((units + each - 1) / each, 1, most));
  };
  if (sent <= (Bytes{384} << 10)) {
    const Bytes units = (block + 7) / 8;
    const Bytes threads = std::clamp<Bytes>(round_up((units + 127) / 128, 32), 32, 512);
    return {Method::packets, blocks_for(units, threads, 256), static_cast<unsigned>(threads)};
  }
  constexpr Bytes threads = 256;
  const Bytes vectors = (block + 15) / 16;
  const Bytes most_in_one_shot = Bytes{call.ranks == 2 ? 4u : 1u} << 20;  // of two ranks both shots send as much
  if (!has_method(call.operation, Method::two_shot) || sent <= most_in_one_shot)
    return {Method::one_shot, blocks_for(vectors, 2 * threads, 256), unsigned{threads}};
  const Bytes part = vectors / static_cast<Bytes>(call.ranks);
  return {Method::two_shot, part <= 32768 ? blocks_for(part, 2 * threads, 64) : 256, unsigned{threads}};
}

}  // namespace waywiser::fused
