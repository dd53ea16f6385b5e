#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu_driver.hpp"
#include "memory_table.hpp"
#include "nixl_types.hpp"

namespace waywiser_nixl {

// Who shows it may read the memory of the agent that has it.
using Key = std::array<std::uint64_t, 2>;

// GPU memory of the agent that orders, as it is registered there.
struct OrderedGpuMemory {
  GpuExport shared;
  std::uint64_t address = 0, bytes = 0;
};

// What an agent asks the owner of host memory to copy, as only the owner can lock its pages: between GPU memory of the
// one that orders and that host memory. Ranges stand in the order of their memories.
struct CopyOrder {
  Key key{};
  std::uint64_t number = 0;
  Operation operation = Operation::read;  // as the one that orders sees it
  std::vector<OrderedGpuMemory> gpu_memories;
  std::vector<MemoryNumber> host_memories;
  std::vector<iovec> gpu_ranges, host_ranges;
};
// What the owner answers, once: what became of it.
struct OrderAnswer {
  std::uint64_t number;
  std::int64_t status;
};

inline constexpr std::size_t longest_order = std::size_t{1} << 20;

std::string text_of(const CopyOrder& order);
// Empty for what text_of() does not write.
std::optional<CopyOrder> order_from(std::string_view text);

}  // namespace waywiser_nixl
