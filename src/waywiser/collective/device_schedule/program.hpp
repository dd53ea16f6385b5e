#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/comm/data_type.hpp"
#include "waywiser/kernels/block/notice.hpp"
#include "waywiser/kernels/block/ranks.hpp"
#include "waywiser/kernels/device_code.hpp"

// A schedule in the form that a kernel interprets: made once, in the memory of the rank's GPU.
namespace waywiser::program {

// Divides numbers below 2^31 by one multiplication and a shift, since GPUs have no instruction that divides (Granlund
// and Montgomery, "Division by invariant integers using multiplication", 1994).
class Divider {
 public:
  static constexpr std::uint64_t end = std::uint64_t{1} << 31;  // of the numbers, and of the divisors

  constexpr Divider() = default;
  constexpr explicit Divider(std::uint32_t divisor) {
    while (std::uint64_t{1} << (shift_ - 31) < divisor) ++shift_;
    factor_ = static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + divisor - 1) / divisor);
  }
  WAYWISER_DEVICE constexpr std::uint32_t quotient(std::uint32_t number) const {
    return static_cast<std::uint32_t>(std::uint64_t{number} * factor_ >> shift_);
  }

 private:
  std::uint32_t factor_ = 1u << 31, shift_ = 31;
};

// The layout of a block's bytes: runs of bytes at listed offsets, or in a box whose last stride is the innermost.
struct View {
  std::byte* data = nullptr;
  const std::uint64_t* offsets = nullptr;  // of each run; nullptr: the box
  std::uint64_t run = 0;                   // bytes; for a contiguous block: all
  std::uint64_t strides[3] = {};
  std::uint64_t counts[2] = {1, 1};  // of the two inner dimensions
  bool has_dividers = false;
  Divider by_run, by_counts[2];

  // For a block of `bytes`: at() is faster from then on, unless the block is too long for that.
  void set_dividers(std::uint64_t bytes) {
    if (bytes > Divider::end || run == 0 || run >= bytes || counts[0] >= Divider::end || counts[1] >= Divider::end)
      return;
    has_dividers = true;
    by_run = Divider(static_cast<std::uint32_t>(run));
    for (unsigned i = 0; i < 2; ++i) by_counts[i] = Divider(static_cast<std::uint32_t>(counts[i]));
  }

  WAYWISER_DEVICE std::byte* at(std::uint64_t byte) const {
    if (byte < run) return data + (offsets == nullptr ? 0 : offsets[0]) + byte;
    if (has_dividers) return at_short(static_cast<std::uint32_t>(byte));
    const std::uint64_t index = byte / run, within = byte - index * run;
    if (offsets != nullptr) return data + offsets[index] + within;
    const std::uint64_t outer = index / counts[1];
    return data + outer / counts[0] * strides[0] + outer % counts[0] * strides[1] + index % counts[1] * strides[2] +
           within;
  }

 private:
  WAYWISER_DEVICE std::byte* at_short(std::uint32_t byte) const {
    const std::uint32_t index = by_run.quotient(byte), within = byte - index * static_cast<std::uint32_t>(run);
    if (offsets != nullptr) return data + offsets[index] + within;
    const std::uint32_t outer = by_counts[1].quotient(index), outermost = by_counts[0].quotient(outer);
    return data + outermost * strides[0] + (outer - outermost * counts[0]) * strides[1] +
           (index - outer * counts[1]) * strides[2] + within;
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
  bool ll = false, ll128 = false;             // a message whose data carry their own flags
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

// What the kernel of a program carries out. Programs of a common form have a kernel of their own, with less code: one
// round of messages that are alike. `rows`: runs of words of 16, 8 or 4 bytes, in a box or listed; otherwise
// contiguous.
enum class Form : std::uint32_t {
  any,
  packets,
  lines,
  lines_of_rows_16,
  lines_of_rows_8,
  lines_of_rows_4,
  stores,
  stores_of_rows
};
inline constexpr std::uint32_t most_kept = 32;  // instructions, and rounds, in a kernel's shared memory

// A GPU with fewer multiprocessors uses fewer.
inline constexpr std::uint32_t most_blocks = 256;

// Private to this rank; only its kernels touch it.
struct alignas(16) ProgramState {
  std::uint64_t progress = 0;               // grows by most_blocks a start: each block adds its share
  std::uint64_t gate = 0;                   // the last round that all blocks have ended
  std::uint64_t arrived[most_blocks] = {};  // the same for each block
};

struct ProgramArguments {
  const Instruction* instructions = nullptr;
  const std::uint32_t* rounds = nullptr;  // the first instruction of each round, and the end
  std::uint32_t round_count = 0, instruction_count = 0;
  std::uint32_t rank = 0, blocks = 1;
  Form form = Form::any;
  std::uint32_t gives_to = 0;  // ranks, as bits
  ProgramState* state = nullptr;
  block::Notice* notice = nullptr;
  const std::uint64_t* begun = nullptr;        // here: the last start that each rank has begun
  std::uint64_t* tell[block::max_ranks] = {};  // at the peer: this rank's entry; nullptr: nothing is sent there
  std::uint64_t signature = 0, deadline_ns = 0;
  const std::uint32_t* failed = nullptr;  // as FusedWork::failed
};

// In the landing memory: first the last start begun by each other rank; then flags and slots, double-buffered. Lines of
// LL128 lie in whole lines of memory.
inline constexpr std::uint64_t begun_bytes = 128;
static_assert(begun_bytes >= block::max_ranks * sizeof(std::uint64_t));

}  // namespace waywiser::program
