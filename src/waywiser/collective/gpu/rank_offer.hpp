#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/members.hpp"
#include "waywiser/comm/message/rank_exchange.hpp"
#include "waywiser/device/shared_region.hpp"

namespace waywiser {

// What one rank of a group tells the others during the set-up of kernels or NCCL.
struct RankOffer {
  SharedRegion landing;
  Bytes share = 0, most = 0;  // of the receive arena
  std::array<char, 256> why_not{}, why_no_ll128{};
  bool kernels_on_shared_gpu = false;
  bool keeps_context = false;  // after a failure
  std::int32_t multiprocessors = 0, max_ctas = 0;
  std::uint32_t reached = 0;  // one bit for each rank of its domain whose memory it has opened

  void refuse(const std::string& why) { why.copy(why_not.data(), why_not.size() - 1); }
  bool refuses() const { return why_not[0] != '\0'; }
};

inline std::vector<RankOffer> offers_of_all(RankExchange& exchange, int ranks, const RankOffer& mine) {
  std::vector<RankOffer> all(static_cast<std::size_t>(ranks));
  exchange.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
  for (RankOffer& offer : all) {
    offer.why_not.back() = offer.why_no_ll128.back() = '\0';
    offer.landing.gpu.back() = '\0';
  }
  return all;
}

// The reason of the first of these ranks that has one.
inline std::string first_reason(const std::vector<RankOffer>& offers, const std::vector<int>& ranks,
                                std::array<char, 256> RankOffer::* why = &RankOffer::why_not) {
  for (const int rank : ranks) {
    const char* text = (offers[static_cast<std::size_t>(rank)].*why).data();
    if (text[0] != '\0') return "rank " + std::to_string(rank) + ": " + text;
  }
  return {};
}

// Two of these ranks that share a GPU; empty: none do.
inline std::string shared_gpu(const std::vector<RankOffer>& offers, const std::vector<int>& ranks) {
  for (const int a : ranks)
    for (const int b : ranks) {
      const auto identity = offers[static_cast<std::size_t>(a)].landing.identity();
      if (b < a && identity == offers[static_cast<std::size_t>(b)].landing.identity())
        return "ranks " + std::to_string(b) + " and " + std::to_string(a) + " share GPU " + std::string(identity);
    }
  return {};
}

// How many ranks have the GPU of this one.
inline int ranks_on_gpu_of(const std::vector<RankOffer>& offers, int rank) {
  const auto identity = offers[static_cast<std::size_t>(rank)].landing.identity();
  return static_cast<int>(
      std::ranges::count_if(offers, [&](const RankOffer& each) { return each.landing.identity() == identity; }));
}

// Turns an exception into a reason.
template <typename Function>
std::string reason_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace waywiser
