#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "waywiser/collective/neighbor_exchange/array_part.hpp"
#include "waywiser/comm/elements.hpp"

namespace waywiser {

class Platform;

// Returns the platform that knows GPU memory. Called only if an array is on a GPU. Throws unavailable.
using PlatformSource = std::function<std::shared_ptr<Platform>()>;

// That an array is in memory of a GPU that `gpus` does not have.
std::string why_foreign(const Platform& gpus);

// The elements of an array of any library: buffer protocol, DLPack, __cuda_array_interface__. Valid while the array
// is. Throws invalid_input in words that name its type.
// `of_bools`: whether they are bools, whose type is uint8 here.
ConstElements input_elements(nanobind::handle array, const PlatformSource& platform, bool* of_bools = nullptr);
// Also: it can be written to.
Elements output_elements(nanobind::handle array, const PlatformSource& platform);

// The bytes of an array whose elements may be of any type.
ConstRegion input_region(nanobind::handle array, const PlatformSource& platform);
Region output_region(nanobind::handle array, const PlatformSource& platform);

// The same of a box in a larger array, from its first element to its last one.
std::pair<Elements, ArrayPart> box_elements(nanobind::handle array, const PlatformSource& platform, bool written);
// For a contiguous array: the parts of `length` elements that begin at the indices.
std::pair<Elements, ArrayPart> listed_elements(nanobind::handle array, std::span<const std::int64_t> indices,
                                               std::size_t length, const PlatformSource& platform, bool written);

}  // namespace waywiser
