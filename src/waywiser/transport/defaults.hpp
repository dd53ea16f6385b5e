#pragma once

#include <cstdint>
#include <string_view>

// Constants of transports that choose sizes. policy/defaults.hpp has all constants of this kind in one table.
namespace waywiser::defaults {

struct Default {
  std::string_view name;
  std::uint64_t value;
  std::string_view unit, source;

  constexpr operator std::uint64_t() const { return value; }
};

inline constexpr std::uint64_t kib = 1024, mib = 1024 * kib;

inline constexpr Default host_copy_share{
    "share of a thread in a copy on a host", 64 * kib, "bytes at least",
    "16 cores beside an H200, docs/lab/host.md: 128 KiB takes to 1.6, 32 KiB 0.68 to 1.24"};
inline constexpr Default ucx_split{"messages over two rails in a measured path", 64 * kib, "bytes at least",
                                   "simulated, docs/lab/host.md: 0.75 to 0.97 of one rail's time, 1.00 at 16 KiB"};
inline constexpr Default courier_message{
    "messages of the courier", 1 * mib, "bytes at most",
    "what tune tries; recorded-4xh200: 0.5 of a copy engine at 4 KiB, 1.3 at 64 KiB, 7 here"};

}  // namespace waywiser::defaults
