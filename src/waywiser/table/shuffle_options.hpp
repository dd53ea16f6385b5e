#pragma once

#include <filesystem>
#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

inline constexpr Bytes usual_piece = Bytes{1} << 20;

struct ShuffleOptions {
  int parts = 0;                      // 0: one for each rank
  Bytes budget = Bytes{256} << 20;    // of pieces under way at this rank
  Bytes piece = 0;                    // of rows that go in one message, at most; one row may be longer; 0: by the plan
  Place place = host(0);              // of the batches that this rank inserts and extracts
  std::string purpose = "a shuffle";  // what the ranks must agree on, in the words of an error
  Bytes memory = 0;                   // of what has come and is not extracted; 0: no limit
  std::filesystem::path spill = {};   // the folder of files for what is above it
};

}  // namespace waywiser
