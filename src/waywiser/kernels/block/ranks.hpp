#pragma once

namespace waywiser::block {

// The most ranks whose GPUs one kernel reaches directly.
inline constexpr unsigned max_ranks = 8;

}  // namespace waywiser::block
