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

// A part of one of a rank's buffers, in elements.
struct Block {
  Area area = Area::output;
  std::size_t offset = 0;
  std::size_t count = 0;
  std::uint32_t array = 0;   // for Area::array: its index
  std::uint32_t layout = 0;  // 0: contiguous; else layouts[layout - 1] describes the elements

  bool operator==(const Block&) const = default;
};

// How the elements of a block lie in its array, relative to the block's offset: runs of contiguous elements. The runs
// begin at `indices`, or form a box.
struct BlockLayout {
  struct Dimension {
    std::size_t count = 1, stride = 0;  // number of runs; elements from one to the next

    bool operator==(const Dimension&) const = default;
  };
  std::size_t run = 1;               // elements
  std::array<Dimension, 3> box;      // the outermost first
  std::vector<std::size_t> indices;  // elements from the offset to each run; empty: `box` applies

  std::size_t runs() const noexcept {
    return indices.empty() ? box[0].count * box[1].count * box[2].count : indices.size();
  }
  // The beginning of run `index`, relative to the block's offset.
  std::size_t run_at(std::size_t index) const {
    if (!indices.empty()) return indices[index];
    const std::size_t inner = box[1].count * box[2].count;
    return index / inner * box[0].stride + index / box[2].count % box[1].count * box[1].stride +
           index % box[2].count * box[2].stride;
  }
  bool operator==(const BlockLayout&) const = default;
};

enum class ArrayUse : std::uint8_t {
  given,    // the caller's, read only
  taken,    // the caller's, read and written
  scratch,  // the executor's
  landing,  // the executor's; wait() finds the data that other ranks put here
};

// One of a rank's arrays, in addition to input, output and scratch.
struct ScheduleArray {
  DataType type = DataType::uint8;
  std::size_t count = 0;  // elements
  ArrayUse use = ArrayUse::given;

  bool operator==(const ScheduleArray&) const = default;
};

enum class StepKind : std::uint8_t {
  send,            // `source` to `peer`
  receive,         // from `peer` into `destination`
  receive_reduce,  // destination = destination op data from `peer`
  copy,            // `source` to `destination`
  reduce,          // destination = destination op source
  put,             // `source` to `peer`; the next signal to this peer tells that it has arrived
  signal,          // tells `peer` that the earlier puts have arrived
  wait,            // for a signal of `peer`; then the data put are in `destination`, part of a landing array
  pack,            // `source`, of any layout, to a contiguous `destination`
  unpack,          // the reverse of pack
};

struct Step {
  StepKind kind = StepKind::copy;
  // A step begins when all steps of earlier rounds of its rank are complete; steps of one round may run in any order.
  std::uint32_t round = 0;
  std::int32_t peer = -1;
  Block destination;
  Block source;

  bool operator==(const Step&) const = default;
};

// What one rank does in a collective or a halo exchange: a value, made by a pure function of rank, ranks and counts.
// The k-th send or signal from a to b matches the k-th receive, receive_reduce or wait of b from a, in the order of the
// steps, and has the same count; a signal has the count of its put, if it has one. A put is in an earlier round than
// its signal, and no other put to that peer lies between them. Input and output may be the same buffer: an algorithm
// must be correct then too, and otherwise never writes its input. Rounds ascend. Only signal and wait may have a count
// of zero. schedule_check.hpp checks these rules.
struct Schedule {
  std::string_view algorithm;  // "ring"
  int rank = 0;
  int ranks = 1;
  std::size_t input_count = 0, output_count = 0, scratch_count = 0;  // elements of each buffer, of the call's type
  std::vector<Step> steps;
  std::vector<ScheduleArray> arrays = {};  // each with its own type
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

// Calls f(first element in the buffer, elements) for each run of a block, in order.
template <typename Function>
void for_each_run(const Schedule& schedule, const Block& block, Function f) {
  if (block.layout == 0) return f(block.offset, block.count);
  const BlockLayout& layout = schedule.layouts[block.layout - 1];
  const std::size_t runs = layout.runs();
  for (std::size_t run = 0; run < runs; ++run) f(block.offset + layout.run_at(run), layout.run);
}

}  // namespace waywiser
