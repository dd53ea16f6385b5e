#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// A part of one array; may be empty.
struct [[gnu::visibility("default")]] ArrayPart {
  DataType type = DataType::uint8;
  std::size_t array_count = 0;  // elements of the array
  std::size_t offset = 0, count = 0;
  BlockLayout layout = {};  // of strided parts: its runs hold `count` elements
  bool apart = false;

  // A whole contiguous array.
  static ArrayPart whole(DataType type, std::size_t count) { return {type, count, 0, count, {}, false}; }
  // A box in a larger array, which begins with the box's first element. `shape`: elements of each dimension, outermost
  // first; `strides`: elements from one to the next. Throws invalid_input with the reason: negative strides; more than
  // three strided dimensions besides one contiguous dimension.
  static ArrayPart box(DataType type, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);
  // `length` elements from each index on, of an array of `array_count` elements. Throws invalid_input.
  static ArrayPart indexed(DataType type, std::size_t array_count, std::span<const std::int64_t> indices,
                           std::size_t length);
};

// What one rank gives to another and takes from it. Between two ranks, entries match in ascending order of the giver's
// give_tag and the taker's take_tag.
struct ArrayExchange {
  int peer = 0;
  ArrayPart give, take;
  int give_tag = 0, take_tag = 0;
};

}  // namespace waywiser
