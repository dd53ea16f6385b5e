#pragma once

#include "waywiser/transport/defaults.hpp"

// What collectives by copy engines take where their way does not say it, beside those of policy/defaults.hpp.
namespace waywiser::defaults {

inline constexpr Default copied_pieces{"pieces of a collective by copy engines", 8, "pieces at least",
                                       "2 x H200, docs/lab/gpu-groups.md: 16 pieces take twice as long"};
inline constexpr Default copied_slot{"receive buffers for a piece by copy engines", 7 * mib, "bytes from all ranks",
                                     "copied in 19 us at 390 GB/s; four, and a group takes at most 256 MiB of a GPU"};
inline constexpr Default symmetric_blocks{
    "collectives of blocks between symmetric arrays", 16 * mib, "bytes a block",
    "2 x H200, docs/lab/gpu-groups.md: kernels take 0.83 to 1.02 at half, 1.08 to 1.20 at twice"};
inline constexpr Default symmetric_arrays{
    "all_reduce and broadcast of symmetric arrays", 64 * mib, "bytes",
    "2 x H200, docs/lab/gpu-groups.md: kernels take 0.87 to 0.95 at half, 1.02 to 1.07 here"};
inline constexpr const Default* copy_table[] = {&copied_pieces, &copied_slot, &symmetric_blocks, &symmetric_arrays};

}  // namespace waywiser::defaults
