#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/measure/profile.hpp"

namespace waywiser {

// What to measure and for how long.
struct CampaignOptions {
  std::string backend = "auto";  // auto, cuda, host or virtual_gpu
  Seconds budget_seconds = 240;  // kept to within the time of one comparison
  bool quick = false;            // a coarser grid of sizes, fewer samples
  bool all_pairs = false;        // every pair instead of one of each class
  bool survey = true;            // all pairs of a class one by one, at few sizes
  std::vector<Place> places;     // empty: all
  std::vector<Operation> operations = {std::begin(waywiser::operations), std::end(waywiser::operations)};
  std::vector<int> processes = {1, 2};
  Bytes min_bytes = 1;
  Bytes max_bytes = Bytes{1} << 30;
  std::string peer_program;  // full path of waywiser-peer; empty: two-process paths are unavailable
  std::uint64_t seed = 1;    // of the order within rounds
};

inline constexpr Seconds quick_budget_seconds = 30;

// Missing or null keys keep their defaults (a quick budget if "quick" is true). Throws invalid_input.
CampaignOptions campaign_options_from_json(const Json& value, std::string_view what);

struct Progress {
  int done = 0, total = 0;
  Seconds seconds_left = 0;  // at most: until the budget is used
  std::string label;
  std::optional<Profile> so_far = std::nullopt;  // from time to time: what a stop would leave
};
Json to_json(const Progress& progress);

// Returns false to stop: all measurements so far are kept.
using ProgressCallback = std::function<bool(const Progress&)>;

}  // namespace waywiser
