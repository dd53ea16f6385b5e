#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "waywiser/comm/elements.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

// A part of one array, or nothing.
struct [[gnu::visibility("default")]] ArrayPart {
  DataType type = DataType::uint8;
  std::size_t array_count = 0;  // elements of the array
  std::size_t offset = 0, count = 0;
  BlockLayout layout = {};  // of parts whose elements lie apart: its runs hold `count` elements
  bool apart = false;

  // All of an array whose elements lie one after the other.
  static ArrayPart whole(DataType type, std::size_t count) { return {type, count, 0, count, {}, false}; }
  // A box in a larger array, which begins with the box's first element: elements of each dimension, the first being the
  // outermost, and elements from one to the next. Throws invalid_input, with what is wrong in words: strides below
  // zero; more than three dimensions whose elements lie apart, besides one whose elements lie together.
  static ArrayPart box(DataType type, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);
  // Of an array of `array_count` elements: `length` elements from each index on. Throws invalid_input.
  static ArrayPart indexed(DataType type, std::size_t array_count, std::span<const std::int64_t> indices,
                           std::size_t length);
};

// What one rank gives to another and takes from it. Between two ranks, what is given is matched in ascending order of
// the giver's give_tag and of the taker's take_tag.
struct ArrayExchange {
  int peer = 0;
  ArrayPart give, take;
  int give_tag = 0, take_tag = 0;
};

// Throws invalid_input where two of the parts overlap of which one is taken. `arrays`: what each of the neighbours
// gives and takes.
void check_apart(std::span<const ArrayExchange> neighbors, std::span<const Elements> arrays);

}  // namespace waywiser
