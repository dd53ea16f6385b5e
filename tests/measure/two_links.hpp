#pragma once

// A made-up machine with two paths.
#include <functional>
#include <string>
#include <vector>

#include "tests/measure/made_up_meter.hpp"
#include "waywiser/measure/campaign.hpp"

namespace waywiser {

using made_up::gpu_path;
using made_up::MadeUpMeter;
using made_up::subject_of;

inline std::function<double(double)> line(double start, double rate) {
  return [=](double bytes) { return start + bytes / rate; };
}

inline CampaignOptions short_options() {
  CampaignOptions options;
  options.operations = {Operation::latency};
  options.max_bytes = 1 << 24;
  options.budget_seconds = 1000;
  return options;
}

inline const Series* series_of(const Profile& profile, const std::string& text) {
  for (const Series& series : profile.series)
    if (label(series.path) == text) return &series;
  return nullptr;
}

inline MadeUpMeter two_links(double noise = 0) {
  MadeUpMeter meter(noise);
  meter.links["a"] = {line(1e-6, 1e9)};
  meter.links["b"] = {line(1e-5, 1e11)};
  return meter;
}

inline std::vector<Subject> two_paths() { return {subject_of({{gpu_path("a"), {}}, {gpu_path("b"), {}}})}; }

}  // namespace waywiser
