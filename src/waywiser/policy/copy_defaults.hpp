#pragma once

#include "waywiser/transport/defaults.hpp"

// What collectives by copy engines take where their way does not say it, beside those of policy/defaults.hpp.
namespace waywiser::defaults {

inline constexpr Default copied_pieces{"pieces of a collective by copy engines", 8, "pieces at least",
                                       "2 x H200, docs/lab/gpu-groups.md: 16 pieces take twice as long"};
inline constexpr Default copied_slot{"receive buffers for a piece by copy engines", 7 * mib, "bytes from all ranks",
                                     "copied in 19 us at 390 GB/s; four, and a group takes at most 256 MiB of a GPU"};
inline constexpr Default symmetric_moves{"collectives that move between symmetric arrays", 8 * mib, "bytes a block",
                                         "2 x H200, docs/lab/gpu-groups.md"};
inline constexpr Default symmetric_sums{"collectives that add up between symmetric arrays", 32 * mib, "bytes a block",
                                        "2 x H200, docs/lab/gpu-groups.md"};
inline constexpr const Default* copy_table[] = {&copied_pieces, &copied_slot, &symmetric_moves, &symmetric_sums};

}  // namespace waywiser::defaults
