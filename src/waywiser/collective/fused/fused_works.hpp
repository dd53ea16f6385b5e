#pragma once

#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/units.hpp"
#include "waywiser/collective/call.hpp"
#include "waywiser/collective/fused/kernel.hpp"

namespace waywiser::fused {

// Addresses as a kernel reaches them.
struct Buffers {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Bytes block = 0;         // of one rank, or the only one
  std::uint32_t slot = 0;  // of the exposed memory that contains the output
  std::uint64_t description = 0;
};

std::optional<std::string> why_no_kernel(const CollectiveCall& call);
bool has_method(Collective operation, Method method);
// Throws invalid_input: too many blocks or threads, or a method that the operation does not have.
void check_shape(const CollectiveCall& call, const KernelShape& shape);

std::size_t input_blocks(const CollectiveCall& call);
std::size_t output_blocks(const CollectiveCall& call);

// The kernels of the call, each with at most `most` bytes a block.
std::vector<FusedWork> works(const CollectiveCall& call, DataType type, ReduceOp op, const Buffers& buffers,
                             Method method, Bytes most);

// The method without a measurement, for `block` bytes; with LL128 or without.
Method default_method(const CollectiveCall& call, Bytes block, bool ll128);
// The default grid of a method, for GPUs with so many multiprocessors.
KernelShape default_shape(const CollectiveCall& call, Bytes block, Method method, int multiprocessors);
// The same with at most so many blocks, which then have more threads.
KernelShape within(KernelShape shape, unsigned blocks);

}  // namespace waywiser::fused
