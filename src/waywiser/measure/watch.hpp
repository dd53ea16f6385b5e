#pragma once

#include <functional>
#include <string>

#include "waywiser/measure/campaign_options.hpp"
#include "waywiser/measure/meter.hpp"

namespace waywiser {

// The budget of a run, its progress, and whether the user has asked to stop.
class Watch {
 public:
  // Returns the profile so far. It is saved from time to time, so that a crash loses only the time since then.
  using SoFar = std::function<Profile()>;
  Watch(const Meter& meter, Seconds budget, const ProgressCallback& progress, SoFar so_far = {});

  Seconds elapsed() const { return meter_.now() - start_; }
  // Until this share of the budget is used; negative afterwards.
  Seconds left(double share = 1) const { return budget_ * share - elapsed(); }

  void expect(int steps) { total_ += steps; }
  void finish_step() { ++done_; }
  // Names what is going on; false when it is to stop.
  bool begin(std::string label);
  bool begin(const PairClass& pair_class, Operation operation, Bytes bytes);
  // Reports now and then; false when the user has asked to stop.
  bool keep_on();
  void stop() { stopped_ = true; }
  bool stopped() const noexcept { return stopped_; }

 private:
  const Meter& meter_;
  Seconds budget_;
  const ProgressCallback& progress_;
  SoFar so_far_;
  Seconds start_;
  Seconds reported_, saved_;
  int done_ = 0, total_ = 0;
  bool stopped_ = false;
  std::string label_;
};

}  // namespace waywiser
