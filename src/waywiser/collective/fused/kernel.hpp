#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "waywiser/collective/fused/landing.hpp"
#include "waywiser/collective/fused/rare_numbers.hpp"
#include "waywiser/kernels/block/half.hpp"

namespace waywiser {
class LaunchCache;
}

namespace waywiser::fused {

enum class Method : std::uint8_t { ll, one_shot, two_shot, ll128, two_shot_ll128 };
constexpr bool is_two_shot(Method method) { return method == Method::two_shot || method == Method::two_shot_ll128; }
constexpr bool is_ll128(Method method) { return method == Method::ll128 || method == Method::two_shot_ll128; }
std::string_view name(Method method) noexcept;

// The shape of an operation's kernel; equal at all ranks.
struct KernelShape {
  Method method = Method::ll;
  unsigned blocks = 1, threads = 1;
};

// Parts that lie in the memory of one GPU, added up there in rank order.
struct SumArguments {
  const std::byte* parts[block::max_ranks];
  std::byte* result;
  std::uint64_t bytes;
  std::uint32_t ranks;
  bool exact;  // all addresses and the length are multiples of 16
  ReduceOp op;
  DataType type;
};
inline constexpr unsigned sum_blocks = 132, sum_threads = 512;

// Runs the whole grid, block after block, on the calling thread. Throws Trap.
void run_on_host(const KernelShape& shape, const FusedArguments& terms, const FusedWork& work);

// For a cudaStream_t of the rank's GPU; empty in a build without CUDA. In a captured graph, launches overlap with the
// end of the preceding kernel if the GPU supports it; otherwise they use `cache`, which must stay.
std::function<void(void*)> cuda_launcher(LaunchCache* cache, const KernelShape& shape, const FusedArguments& terms,
                                         const FusedWork& work);
// The same for sums.
void run_on_host(const SumArguments& sum);
std::function<void(void*)> cuda_launcher(LaunchCache* cache, const SumArguments& sum);

// Calls f.template operator()<T>() with the number type whose kernels carry out such work.
template <typename Function>
void with_kernel_type(DataType of_data, ReduceOp op, bool reduced, Function f) {
  const DataType type = computed_as(of_data, op);
  if (is_rare(type) && !reduced) return f.template operator()<std::uint8_t>();
  switch (type) {
    case DataType::float64: return f.template operator()<double>();
    case DataType::float32: return f.template operator()<float>();
    case DataType::float16: return f.template operator()<Float16>();
    case DataType::bfloat16: return f.template operator()<Bfloat16>();
    case DataType::int8: return f.template operator()<std::int8_t>();
    case DataType::int16: return f.template operator()<std::int16_t>();
    case DataType::int32: return f.template operator()<std::int32_t>();
    case DataType::int64: return f.template operator()<std::int64_t>();
    case DataType::uint8: return f.template operator()<std::uint8_t>();
    default: return f.template operator()<RareNumber>();
  }
}

}  // namespace waywiser::fused
