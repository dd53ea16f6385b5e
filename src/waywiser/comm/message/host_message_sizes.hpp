#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "waywiser/policy/defaults.hpp"

namespace waywiser {

class Chooser;

// What a lane has room for.
inline constexpr std::size_t longest_short = defaults::lane_short;

// The ways of messages between processes of one machine, by their bytes; alike at all ranks. A lane takes a message at
// once; a longer one is offered, and UCX copies it twice, if the two cores are close, or both ranks copy it.
struct HostMessageSizes {
  // What UCX may copy: on close cores, on any; on close ones, and the first message on others is told.
  enum class Cores : std::uint8_t { close, any, told };

  std::size_t lane = longest_short;  // at most
  std::size_t ucx = 0;               // at most; longer ones by both ranks
  Cores cores = Cores::close;

  // Whether UCX copies an offered message. `is_close()`: whether the cores of both ranks are; asked only if it matters.
  template <typename Ask>
  bool is_by_ucx(std::size_t bytes, Ask is_close) {
    if (bytes > ucx) return false;
    if (cores == Cores::any || is_close()) return true;
    if (cores == Cores::told) [[unlikely]]
      tell_copies();
    return false;
  }

 private:
  void tell_copies() noexcept;
};

// From the plan's rows for the operation "message" of "host" memory, whose ways are `lane`, `ucx` and `copies`; without
// them the defaults. `ucx_copies`: what this UCX copies well. Tells which row is passed over, and why.
HostMessageSizes host_message_sizes(const Chooser* chooser, std::size_t ucx_copies);
std::span<const std::string_view> host_message_ways();
// All messages by one way, but no bytes at all, which a lane takes. Empty for an unknown way. Throws unavailable if it
// cannot carry so many bytes.
std::optional<HostMessageSizes> only_host_way(std::string_view way, std::size_t bytes);

}  // namespace waywiser
