#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/comm/session/execution.hpp"

namespace waywiser {

// Lets the ranks of a group compare their calls if the executor of the call does not: an all_gather on the hosts of
// counts and reductions, whose messages carry the rest. If two calls differ, the group fails. A rank has told all
// others as soon as this begins.
class CallComparison : public Activity {
 public:
  CallComparison(Session& session, const std::shared_ptr<const Members>& members, const Call& call);

  bool advance() override;
  const Call& call() const override { return call_; }
  std::string progress_text() const override { return "its calls are compared: " + execution_.progress_text(); }
  void abandon() noexcept override { execution_.abandon(); }

 private:
  Session& session_;
  const Call call_;
  const int rank_;
  const std::vector<std::uint64_t> mine_;
  std::vector<std::uint64_t> all_;
  Execution execution_;
};

}  // namespace waywiser
