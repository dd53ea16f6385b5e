#pragma once

#include "waywiser/transport/defaults.hpp"

// The choices without a plan for messages that kernels put on a heap, beside those of policy/defaults.hpp. Bulk
// asynchronous copies are used only where they were measured.
namespace waywiser::defaults {

inline constexpr Default heap_packets_beside_lines{"messages of a heap by LL where LL128 is available", 2 * kib,
                                                   "bytes at most", "2 x H100: docs/lab/gpu-one-sided.md, one block"};
inline constexpr Default heap_lines{"messages of a heap by LL128", 32 * kib, "bytes at most",
                                    "2 x H100: docs/lab/gpu-one-sided.md, one block"};
inline constexpr Default heap_packets{"messages of a heap by LL without LL128", 32 * kib, "bytes at most",
                                      "2 x H200: docs/lab/gpu-one-sided.md, one block"};
inline constexpr const Default* heap_table[] = {&heap_packets_beside_lines, &heap_lines, &heap_packets};

}  // namespace waywiser::defaults
