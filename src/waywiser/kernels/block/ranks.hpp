#pragma once

namespace waywiser::block {

// Ranks whose GPUs a kernel reaches by itself.
inline constexpr unsigned max_ranks = 8;

}  // namespace waywiser::block
