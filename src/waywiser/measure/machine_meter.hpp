#pragma once

#include <memory>
#include <string>

#include "waywiser/measure/meter.hpp"

namespace waywiser {

// The meter of a whole machine: paths within one process go to one meter, paths between two to the other. Samples
// disturbed from outside are repeated, within bounds.
class MachineMeter : public Meter {
 public:
  // `between_two` may be nullptr; then `why_not_two` is the reason.
  MachineMeter(std::unique_ptr<Meter> within_one, std::unique_ptr<Meter> between_two, std::string why_not_two = {});
  // The meter for paths to another machine.
  void set_between_machines(std::unique_ptr<Meter> meter) { between_machines_ = std::move(meter); }

  bool simulated() const override { return within_one_->simulated(); }
  std::optional<std::string> why_unavailable(const Path& path) override;
  Bytes largest(const Path& path) const override;
  Bytes smallest(const Path& path) const override;
  int pairs_at_once(const Path& path) const override { return of(path).pairs_at_once(path); }
  Limit limit(const Path& path, Operation operation) const override;
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override;
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override;
  Seconds first_use(const Path& path) override;

 private:
  // Throws unavailable if there is no meter for it.
  Meter& of(const Path& path) const;

  bool may_repeat();

  int taken_ = 0, repeated_ = 0;
  std::unique_ptr<Meter> within_one_, between_two_, between_machines_;
  std::string why_not_two_;
};

}  // namespace waywiser
