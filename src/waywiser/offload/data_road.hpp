#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace waywiser {

// How a server moves the bytes of an array between the messages of its client and its GPU.
enum class DataRoad : std::uint8_t {
  direct,    // messages from and into GPU memory: no copy in memory of the server is asked for
  pageable,  // piece by piece through ordinary memory of the server
  pinned,    // the whole array through page-locked memory
  pipelined  // through two page-locked pieces: one is copied while the other one travels
};
inline constexpr std::array<DataRoad, 4> data_roads = {DataRoad::direct, DataRoad::pageable, DataRoad::pinned,
                                                       DataRoad::pipelined};
// Until the client names another one.
inline constexpr DataRoad first_data_road = DataRoad::pipelined;

[[gnu::visibility("default")]] std::string_view name(DataRoad road) noexcept;
// Throws invalid_input.
[[gnu::visibility("default")]] DataRoad parse_data_road(std::string_view text);

}  // namespace waywiser
