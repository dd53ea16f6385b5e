#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/campaign.hpp"

namespace waywiser::made_up {

// How a path of the made-up machine behaves, over bytes.
struct Behaviour {
  std::function<double(double)> seconds;
  double fails_from = INFINITY;     // throws device
  double corrupts_from = INFINITY;  // wrong bytes
  double limit = 0;                 // bytes per second
  Bytes smallest = 0;
};

// A machine that exists in numbers only: its own clock, noise that repeats for a seed.
class MadeUpMeter : public Meter {
 public:
  explicit MadeUpMeter(double noise = 0, std::uint64_t seed = 1) : noise_(noise), random_(seed) {}

  std::map<std::string, Behaviour> links;  // by label
  std::set<std::string> missing;
  std::map<std::string, int> taken;  // samples by "label operation bytes"
  double fixed_cost = 1e-5;          // of each sample, on top of its transfers
  double loaded_cost = 0;            // of each sample of `loaded`, besides
  std::function<bool(Bytes)> disturbed;

  bool simulated() const override { return true; }
  std::optional<std::string> why_unavailable(const Path& path) override {
    if (missing.contains(label(path))) return "not on this machine";
    return {};
  }
  Bytes largest(const Path&) const override { return Bytes{1} << 30; }
  int pairs_at_once(const Path&) const override { return 12; }
  Bytes smallest(const Path& path) const override { return links.at(label(path)).smallest; }
  Limit limit(const Path& path, Operation) const override { return {links.at(label(path)).limit, "made up"}; }
  std::optional<std::string> verify(const Path& path, Operation, Bytes bytes) override {
    const Behaviour& link = at(path, bytes);
    clock_ += fixed_cost + link.seconds(static_cast<double>(bytes));
    if (static_cast<double>(bytes) >= link.corrupts_from) return "1 of " + std::to_string(bytes) + " bytes wrong";
    return {};
  }
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override {
    const Behaviour& link = at(path, bytes);
    ++taken[label(path) + " " + std::string(name(operation)) + " " + std::to_string(bytes)];
    std::uniform_real_distribution<double> error(-noise_, noise_);
    const Seconds seconds = link.seconds(static_cast<double>(bytes)) * (1 + error(random_));
    clock_ += fixed_cost + seconds * repetitions + (operation == Operation::loaded ? loaded_cost : 0);
    return {seconds, seconds / 2, {}, disturbed && disturbed(bytes) ? "made to be disturbed" : ""};
  }
  Seconds first_use(const Path&) override { return clock_ += 1e-3, 1e-3; }
  Seconds now() const override { return clock_; }

 private:
  const Behaviour& at(const Path& path, Bytes bytes) {
    const Behaviour& link = links.at(label(path));
    if (static_cast<double>(bytes) >= link.fails_from) {
      clock_ += fixed_cost;
      throw Error(ErrorKind::device, "made to fail");
    }
    return link;
  }

  double noise_;
  std::mt19937_64 random_;
  Seconds clock_ = 0;
};

inline Path gpu_path(const std::string& mechanism, std::map<std::string, std::string> parameters = {}) {
  return {mechanism, gpu(0), gpu(1), 1, std::move(parameters)};
}

inline Subject subject_of(std::vector<Family> families) {
  return {{"gpu>gpu", {{gpu(0), gpu(1)}}, 1}, std::move(families)};
}

}  // namespace waywiser::made_up
