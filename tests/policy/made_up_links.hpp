#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "waywiser/measure/profile.hpp"

namespace waywiser::made_up {

using TimeOf = std::function<double(double bytes)>;

// a + bytes / rate
inline TimeOf line(double start, double rate) {
  return [=](double bytes) { return start + bytes / rate; };
}

// Another line from a size on.
inline TimeOf cliff(TimeOf below, double at, TimeOf above) {
  return [=](double bytes) { return bytes < at ? below(bytes) : above(bytes); };
}

struct MadeUpLink {
  std::string mechanism;
  TimeOf seconds;
  double fails_from = INFINITY;
};

inline Path made_up_path(const std::string& mechanism) { return {mechanism, gpu(0), gpu(1), 1, {}}; }

// Points at the powers of two up to `most`, with a relative error drawn from [-noise, noise] and intervals to match.
inline Series made_up_series(const MadeUpLink& link, double noise, std::uint64_t seed, Bytes most = Bytes{1} << 30) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> error(-noise, noise);
  Series series;
  series.path = made_up_path(link.mechanism);
  for (Bytes bytes = 1; bytes <= most && static_cast<double>(bytes) < link.fails_from; bytes *= 2) {
    Point point;
    point.bytes = bytes;
    point.seconds = point.p50 = point.p99 = link.seconds(static_cast<double>(bytes)) * (1 + error(random));
    point.low = point.seconds * (1 - noise);
    point.high = point.seconds * (1 + noise);
    point.samples = 9;
    point.verified = true;
    series.points.push_back(point);
  }
  return series;
}

inline Profile made_up_profile(const std::vector<MadeUpLink>& links, double noise = 0, std::uint64_t seed = 1) {
  Profile profile;
  profile.fingerprint = "0123456789abcdef";
  profile.machine = "made up";
  profile.backend = "host";
  profile.simulated = true;
  profile.created = "2000-01-01T00:00:00Z";
  profile.classes.push_back({"gpu>gpu", {{gpu(0), gpu(1)}}, 1});
  for (const MadeUpLink& link : links) {
    profile.series.push_back(made_up_series(link, noise, seed++));
    if (std::isfinite(link.fails_from))
      profile.rejected.push_back(
          {made_up_path(link.mechanism), Operation::latency, static_cast<Bytes>(link.fails_from), "made to fail"});
  }
  return profile;
}

}  // namespace waywiser::made_up
