#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/kernels/block/notice.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/device_code.hpp"

// A schedule in the form that a kernel interprets: made once, in the memory of the rank's GPU.
namespace waywiser::program {

// The layout of a block's bytes: runs of bytes at listed offsets, or in a box whose last stride is the innermost.
struct View {
  std::byte* data = nullptr;
  const std::uint64_t* offsets = nullptr;  // of each run; nullptr: the box
  std::uint64_t run = 0;                   // bytes; for a contiguous block: all
  std::uint64_t strides[3] = {};
  std::uint64_t counts[2] = {1, 1};  // of the two inner dimensions

  WAYWISER_DEVICE std::byte* at(std::uint64_t byte) const {
    if (byte < run) return data + (offsets == nullptr ? 0 : offsets[0]) + byte;
    const std::uint64_t index = byte / run, within = byte - index * run;
    if (offsets != nullptr) return data + offsets[index] + within;
    const std::uint64_t outer = index / counts[1];
    return data + outer / counts[0] * strides[0] + outer % counts[0] * strides[1] + index % counts[1] * strides[2] +
           within;
  }
};

enum class Act : std::uint32_t {
  send,    // `from` to the slot at the peer, with a flag that marks arrival
  put,     // the same without the flag; a signal follows
  signal,  // sets the flag
  take,    // waits for the peer, then copies its slot to `to`
  copy,    // `from` to `to`, or reduced with it
};
WAYWISER_DEVICE constexpr bool waits(Act act) { return act == Act::take; }

struct Instruction {
  Act act = Act::copy;
  std::uint32_t peer = 0;
  std::uint32_t first_block = 0, pieces = 0;  // piece i belongs to block (first_block + i), cyclically
  std::uint64_t bytes = 0, piece = 0;         // in total, and of a piece
  std::uint32_t word = 1;                     // bytes that can be moved at once, for any layout: 1 to 16
  bool ll = false;                            // a message by LL: the data carry their own flags
  bool reduces = false;
  bool direct = false;  // without a slot: `to` of a send or put is the receiver's array
  DataType type = DataType::uint8;
  ReduceOp op = ReduceOp::sum;
  View from, to;
  // In the receiver's landing memory, for odd starts; slots for even starts lie `turn` bytes later.
  std::byte* slot = nullptr;
  std::uint64_t* flags = nullptr;  // one per piece
  std::uint64_t turn = 0;
};

// Private to this rank; only its kernels touch it.
struct alignas(16) ProgramState {
  std::uint64_t ended = 0;         // ended blocks, over all starts
  std::uint64_t gate = 0;          // the last round that all blocks have ended
  std::uint64_t arrived[64] = {};  // the same for each block
};
inline constexpr std::uint32_t most_blocks = 64;

struct ProgramArguments {
  const Instruction* instructions = nullptr;
  const std::uint32_t* rounds = nullptr;  // the first instruction of each round, and the end
  std::uint32_t round_count = 0, instruction_count = 0;
  std::uint32_t rank = 0, blocks = 1;
  std::uint32_t gives_to = 0;  // ranks, as bits
  ProgramState* state = nullptr;
  block::Notice* notice = nullptr;
  const std::uint64_t* begun = nullptr;        // here: the last start that each rank has begun
  std::uint64_t* tell[block::max_ranks] = {};  // at the peer: this rank's entry; nullptr: nothing is sent there
  std::uint64_t signature = 0, deadline_ns = 0;
};

// In the landing memory: first the last start begun by each other rank; then flags and slots, double-buffered.
inline constexpr std::uint64_t begun_bytes = block::max_ranks * sizeof(std::uint64_t);

}  // namespace waywiser::program
