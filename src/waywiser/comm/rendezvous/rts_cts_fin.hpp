#pragma once

#include <array>
#include <string>

#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/device/shared_region.hpp"

namespace waywiser {

enum class RendezvousWay : std::uint32_t { direct, pieces, read };

struct ReadyToSend {
  std::uint32_t element_type = 0;
  std::uint32_t readable = 0;  // whether the receiver may read `region`
  Bytes bytes = 0;
  SharedRegion region;
};

// Why a message is staged that neither end could copy directly: both reasons, if they differ.
inline std::string with_second_reason(std::string first, const char* what, const std::string& second) {
  if (second.empty() || first.find(second) != std::string::npos) return first;
  return std::move(first) + "; " + what + ": " + second;
}

inline constexpr std::uint32_t no_network_path = ~std::uint32_t{0};

struct ClearToSend {
  RendezvousWay way = RendezvousWay::pieces;
  std::uint32_t element_type = 0;
  std::uint32_t on_gpu = 0, gpu_index = 0;
  std::uint32_t ucx_reaches = 0;  // UCX can write to the destination
  Bytes bytes = 0;
  SharedRegion region;
  std::array<char, 128> why_not_direct{};
};

// RendezvousWay::direct: the bytes have arrived. RendezvousWay::pieces: the bytes follow in pieces; between machines by
// a way of the plan, if it has one.
struct Finished {
  RendezvousWay way = RendezvousWay::pieces;
  std::uint32_t network_path = no_network_path;
  std::array<char, 120> why_not_direct{};
};

}  // namespace waywiser
