#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "waywiser/comm/data_type.hpp"

namespace waywiser {

enum class Area : std::uint8_t {
  input,
  output,
  scratch,
  array,  // one of Schedule::arrays
};

// A piece of one of a rank's buffers, in elements.
struct Block {
  Area area = Area::output;
  std::size_t offset = 0;
  std::size_t count = 0;
  std::uint32_t array = 0;   // of Area::array: which one
  std::uint32_t layout = 0;  // 0: its elements lie one after the other; else as layouts[layout - 1] says

  bool operator==(const Block&) const = default;
};

// How the elements of a block lie in its array, from the block's offset on: runs of elements that lie together. The
// runs begin where `indices` says, or form a box.
struct BlockLayout {
  struct Dimension {
    std::size_t count = 1, stride = 0;  // runs; elements from one to the next

    bool operator==(const Dimension&) const = default;
  };
  std::size_t run = 1;               // elements
  std::array<Dimension, 3> box;      // the first is the outermost
  std::vector<std::size_t> indices;  // elements from the offset to each run; empty: the box counts

  std::size_t runs() const noexcept {
    return indices.empty() ? box[0].count * box[1].count * box[2].count : indices.size();
  }
  // Where run `index` begins, from the block's offset.
  std::size_t run_at(std::size_t index) const {
    if (!indices.empty()) return indices[index];
    const std::size_t inner = box[1].count * box[2].count;
    return index / inner * box[0].stride + index / box[2].count % box[1].count * box[1].stride +
           index % box[2].count * box[2].stride;
  }
  bool operator==(const BlockLayout&) const = default;
};

enum class ArrayUse : std::uint8_t {
  given,    // the caller's, only read
  taken,    // the caller's, read and written
  scratch,  // the executor's own
  landing,  // the same; what other ranks put, wait() finds here
};

// One of a rank's arrays, beside input, output and scratch.
struct ScheduleArray {
  DataType type = DataType::uint8;
  std::size_t count = 0;  // elements
  ArrayUse use = ArrayUse::given;

  bool operator==(const ScheduleArray&) const = default;
};

enum class StepKind : std::uint8_t {
  send,            // `source` to `peer`
  receive,         // from `peer` into `destination`
  receive_reduce,  // destination = destination op what comes from `peer`
  copy,            // `source` to `destination`
  reduce,          // destination = destination op source
  put,             // `source` to `peer`, where the next signal to this peer tells that it is there
  signal,          // to `peer`: what was put before is there
  wait,            // for a signal of `peer`; what was put is in `destination` then, of a landing array
  pack,            // `source`, however it lies, to a `destination` whose elements lie one after the other
  unpack,          // the other way round
};

struct Step {
  StepKind kind = StepKind::copy;
  // Begins when every step of the earlier rounds of its rank is complete; steps of one round may run in any order.
  std::uint32_t round = 0;
  std::int32_t peer = -1;
  Block destination;
  Block source;

  bool operator==(const Step&) const = default;
};

// What one rank does in a collective or a halo exchange: a value, made by a pure function of rank, ranks and counts.
// The k-th send or signal from a to b belongs to the k-th receive, receive_reduce or wait of b from a, in the order of
// the steps, and has its count; of a signal, that of the put before it, if there is one. A put comes in an earlier
// round than its signal, and no other put to that peer between them. Input and output may be the same buffer: an
// algorithm must be right then too, and never writes its input otherwise. Rounds ascend. Zero counts are not steps, but
// for signal and wait. schedule_check.hpp says whether a schedule keeps to this.
struct Schedule {
  std::string_view algorithm;  // "ring"
  int rank = 0;
  int ranks = 1;
  std::size_t input_count = 0, output_count = 0, scratch_count = 0;  // elements of each buffer, of the call's type
  std::vector<Step> steps;
  std::vector<ScheduleArray> arrays = {};  // each of a type of its own
  std::vector<BlockLayout> layouts = {};
};

constexpr bool receives(StepKind kind) noexcept {
  return kind == StepKind::receive || kind == StepKind::receive_reduce || kind == StepKind::wait;
}
constexpr bool sends(StepKind kind) noexcept { return kind == StepKind::send || kind == StepKind::signal; }
constexpr bool is_local(StepKind kind) noexcept { return !receives(kind) && !sends(kind) && kind != StepKind::put; }

inline std::size_t bytes_of_element(const Schedule& schedule, const Block& block, DataType type_of_call) {
  return bytes_of(block.area == Area::array ? schedule.arrays[block.array].type : type_of_call);
}

// f(first element in the buffer, elements) for each run of a block, in their order.
template <typename Function>
void for_each_run(const Schedule& schedule, const Block& block, Function f) {
  if (block.layout == 0) return f(block.offset, block.count);
  const BlockLayout& layout = schedule.layouts[block.layout - 1];
  const std::size_t runs = layout.runs();
  for (std::size_t run = 0; run < runs; ++run) f(block.offset + layout.run_at(run), layout.run);
}

}  // namespace waywiser
