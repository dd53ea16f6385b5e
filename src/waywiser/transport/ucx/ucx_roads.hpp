#pragma once

#include <span>
#include <string_view>

namespace waywiser {

// What the parameter transports=NAME means to UCX.
struct UcxRoad {
  std::string_view name;        // also the transport of UCX that must be there and carry the large messages
  std::string_view transports;  // UCX_TLS: with those that NAME needs beside it, for small messages or to connect
  std::string_view devices;     // UCX_NET_DEVICES; empty for all
  enum class Memory { host, gpu_pair, any_gpu } memory;
};

std::span<const UcxRoad> ucx_roads();
// nullptr when there is no such road.
const UcxRoad* find_ucx_road(std::string_view name);

}  // namespace waywiser
