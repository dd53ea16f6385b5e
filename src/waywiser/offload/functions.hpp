#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "waywiser/device/region.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/offload/array_head.hpp"
#include "waywiser/offload/request.hpp"

namespace waywiser {

// An array in the memory of the worker's GPU.
struct HeldArray {
  ArrayHead head;
  Region memory;
  std::shared_ptr<const void> owner;
};

// A new array, in host memory or on the GPU, and how long the function itself took.
struct FunctionResult {
  HeldArray array;
  Seconds seconds = 0;
};

// The functions of a server besides the built-in ones. `call` returns when the function is over, and throws Error.
struct ServerFunctions {
  std::vector<std::string> names;
  std::function<FunctionResult(const std::string& name, std::span<const HeldArray> arrays,
                               const requests::Numbers& numbers)>
      call;
};

// The built-in functions: add(a, b), multiply(a, b), repeat_add(a, b, times=) and scale(a, factor=), of arrays of one
// shape and type: float64, float32, int64, int32 (scale: the first two).
std::span<const std::string_view> builtin_functions();
bool is_builtin(std::string_view name);
// The head of the result. Throws invalid_input for arrays and numbers that the function does not take.
ArrayHead check_builtin(const requests::Run& call, std::span<const HeldArray> arrays);
// After check_builtin: enqueues it.
void enqueue_builtin(Stream& stream, const requests::Run& call, std::span<const HeldArray> arrays, Region result);

}  // namespace waywiser
