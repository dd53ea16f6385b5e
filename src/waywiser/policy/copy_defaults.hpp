#pragma once

#include "waywiser/transport/defaults.hpp"

// The choices without a plan for collectives and messages by copy engines, beside those of policy/defaults.hpp.
namespace waywiser::defaults {

inline constexpr Default messages_by_kernels{"messages by kernels, else by copy engines", 32 * mib, "bytes at most",
                                             "2 x H200, docs/lab/gpu-groups.md: one copy takes 0.92 at 64 MiB"};
inline constexpr Default copied_pieces{"pieces of a collective or message by copy engines", 8, "pieces at least",
                                       "a decision, not yet a measurement"};
inline constexpr Default copied_slot{"receive buffers for a piece by copy engines", 7 * mib, "bytes from all ranks",
                                     "copied in 19 us at 390 GB/s; four, and a group takes at most 256 MiB of a GPU"};
inline constexpr const Default* copy_table[] = {&messages_by_kernels, &copied_pieces, &copied_slot};

}  // namespace waywiser::defaults
