#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waywiser/policy/choose.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

// What tune would have measured between two GPUs: `operation` by `way` takes `start` plus the bytes divided by `rate`.
inline CollectiveSeries made_up_series(std::string operation, std::string way, Seconds start, double rate) {
  CollectiveSeries series{std::move(operation), "gpu", 2, std::move(way), {}};
  for (Bytes bytes = 8; bytes <= Bytes{16} << 20; bytes *= 8) {
    const Seconds seconds = start + static_cast<double>(bytes) / rate;
    series.points.push_back({bytes, seconds, seconds, seconds, seconds, seconds, 100, 0, true});
  }
  return series;
}

// The choice by these series alone.
inline Chooser chooser_of(const std::vector<CollectiveSeries>& series) {
  Profile profile;
  profile.collectives = series;
  return Chooser(plan_from_json(to_json(choose(profile, MechanismOrder())), "plan"));
}

}  // namespace waywiser
