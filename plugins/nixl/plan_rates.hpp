#pragma once

#include <memory>
#include <optional>
#include <string>

#include "waywiser/c/waywiser.h"

namespace waywiser_nixl {

// What the plan says of one transfer between two memories of this machine.
struct Expected {
  double seconds = 0;
  std::string way;
};

// The plan's rows for host memory: how long transfers take, and by how many threads. Without a plan, or with one that
// is not for this machine, it knows nothing.
class PlanRates {
 public:
  // file: empty for that of WAYWISER_PLAN. Says why there is no plan if one was named.
  explicit PlanRates(const std::string& file);

  std::optional<Expected> expect(std::size_t bytes, int processes) const;
  // Of the way for large transfers; 1 without a plan.
  int threads() const { return threads_; }

 private:
  struct Free {
    void operator()(ww_plan* plan) const { ww_plan_free(plan); }
  };
  std::unique_ptr<ww_plan, Free> plan_;
  int threads_ = 1;
};

}  // namespace waywiser_nixl
