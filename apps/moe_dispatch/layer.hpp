#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>
#include <waywiser/kernels/block/half.hpp>

#include "apps/parallel.hpp"

namespace apps {

using waywiser::Bfloat16;

// A layer of experts: each rank has so many tokens, vectors of `hidden` numbers, and an equal part of the experts.
struct ExpertLayer {
  std::int64_t tokens = 0, hidden = 0;
  int experts = 0, top = 0, ranks = 1, rank = 0;

  APPS_CALLABLE int owner(int expert) const { return expert / (experts / ranks); }
  APPS_CALLABLE std::int64_t vectors() const { return hidden / 8; }
  // In place of an expert's network: a factor of its own.
  APPS_CALLABLE static float factor(int expert) { return static_cast<float>(1 + expert % 2); }
};

constexpr int most_top = 8;

// The experts of a token, and their weights.
struct Route {
  int experts[most_top] = {};
  float weights[most_top] = {};

  // The ranks that have them, as bits.
  APPS_CALLABLE std::uint64_t ranks(const ExpertLayer& layer) const {
    std::uint64_t all = 0;
    for (int i = 0; i < layer.top; ++i) all |= std::uint64_t{1} << layer.owner(experts[i]);
    return all;
  }
  // What the experts of a rank multiply a token by, all together.
  APPS_CALLABLE float factor_at(const ExpertLayer& layer, int rank) const {
    float all = 0;
    for (int i = 0; i < layer.top; ++i)
      if (layer.owner(experts[i]) == rank) all += weights[i] * ExpertLayer::factor(experts[i]);
    return all;
  }
};

// Eight numbers of a vector: one access.
struct alignas(16) Eight {
  Bfloat16 values[8] = {};
};

// Every rank knows the routes and the tokens of each; all sums are exact in bfloat16.
inline std::vector<Route> routes_of(const ExpertLayer& layer, int rank) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<Route> routes(static_cast<std::size_t>(layer.tokens));
  std::vector<int> experts(static_cast<std::size_t>(layer.experts));
  for (int i = 0; i < layer.experts; ++i) experts[static_cast<std::size_t>(i)] = i;
  for (Route& route : routes)
    for (int i = 0; i < layer.top; ++i) {
      const auto left = static_cast<unsigned>(layer.experts - i);
      std::swap(experts[static_cast<std::size_t>(i)], experts[static_cast<std::size_t>(i) + random() % left]);
      route.experts[i] = experts[static_cast<std::size_t>(i)];
      route.weights[i] = random() % 2 == 0 ? 0.5f : 1.0f;
    }
  return routes;
}

inline float token_value(int rank, std::int64_t token, std::int64_t at) {
  return static_cast<float>((static_cast<std::int64_t>(rank) * 3 + token * 5 + at) % 8);
}

inline std::vector<Eight> tokens_of(const ExpertLayer& layer) {
  std::vector<Eight> all(static_cast<std::size_t>(layer.tokens * layer.vectors()));
  for (std::int64_t token = 0; token < layer.tokens; ++token)
    for (std::int64_t at = 0; at < layer.hidden; ++at)
      all[static_cast<std::size_t>(token * layer.vectors() + at / 8)].values[at % 8] =
          waywiser::to_bfloat16(token_value(layer.rank, token, at));
  return all;
}

// How many numbers are not what the experts make of this rank's tokens, by plain arrays.
inline std::int64_t wrong_numbers(const ExpertLayer& layer, const std::vector<Route>& routes,
                                  const std::vector<Eight>& result) {
  std::int64_t wrong = 0;
  for (std::int64_t token = 0; token < layer.tokens; ++token) {
    float factor = 0;
    const Route& route = routes[static_cast<std::size_t>(token)];
    for (int i = 0; i < layer.top; ++i) factor += route.weights[i] * ExpertLayer::factor(route.experts[i]);
    for (std::int64_t at = 0; at < layer.hidden; ++at) {
      const Bfloat16 seen = result[static_cast<std::size_t>(token * layer.vectors() + at / 8)].values[at % 8];
      wrong += waywiser::to_float(seen) != factor * token_value(layer.rank, token, at) ? 1 : 0;
    }
  }
  return wrong;
}

// The rows that this rank gives to others in a step: each token goes once to each other rank that has one of its
// experts, and as many come back.
inline std::int64_t rows_to_others(const ExpertLayer& layer, const std::vector<Route>& routes) {
  std::int64_t rows = 0;
  for (const Route& route : routes)
    for (int rank = 0; rank < layer.ranks; ++rank)
      rows += rank != layer.rank && (route.ranks(layer) >> rank & 1) != 0 ? 1 : 0;
  return rows;
}

}  // namespace apps
