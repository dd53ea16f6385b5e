#pragma once

namespace waywiser {

// AddressSanitizer's process_vm_readv takes the other process's addresses for its own: cma cannot run under it.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool cma_runs = false;
#else
inline constexpr bool cma_runs = true;
#endif

}  // namespace waywiser
