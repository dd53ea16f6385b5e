#pragma once

#include <map>
#include <tuple>

#include "waywiser/measure/campaign.hpp"
#include "waywiser/measure/meter.hpp"
#include "waywiser/sim/timing.hpp"

namespace waywiser::sim {

// Times of a machine that is not here. Its clock is virtual too: it advances by what a real measurement would have
// taken, so that a campaign of any budget ends at once. Nothing is moved, so there is nothing to verify.
class SimulatedMeter : public Meter {
 public:
  SimulatedMeter(const NodeModel& node, std::vector<PairClass> classes);

  bool simulated() const override { return true; }
  std::optional<std::string> why_unavailable(const Path& path) override;
  Bytes largest(const Path& path) const override;
  int pairs_at_once(const Path& path) const override;
  Limit limit(const Path& path, Operation operation) const override;
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override;
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override;
  Seconds first_use(const Path& path) override;
  Seconds now() const override { return clock_; }

 private:
  const Timed& timed(const Path& path, Operation operation, Bytes bytes);

  const NodeModel& node_;
  std::vector<PairClass> classes_;
  Seconds clock_ = 0;
  std::map<std::tuple<std::string, Operation, Bytes>, Timed> known_;
};

// What `measure` and `tune` do, for a machine that is not here. The profile is labelled simulated.
Profile measure_simulated(const NodeModel& node, const CampaignOptions& options, const Profile* previous,
                          const ProgressCallback& progress);
// The classes of pairs of the machine with the paths between them.
std::vector<Subject> simulated_subjects(const Topology& topology, const CampaignOptions& options);

}  // namespace waywiser::sim
