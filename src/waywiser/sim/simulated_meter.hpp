#pragma once

#include <map>
#include <tuple>

#include "waywiser/measure/campaign.hpp"
#include "waywiser/measure/meter.hpp"
#include "waywiser/sim/timing.hpp"

namespace waywiser::sim {

// Times of a machine that is not here, and of the paths from it to the other nodes of a cluster. Its clock is virtual
// too: it advances by the time of a real measurement, so that a campaign of any budget ends at once. No bytes are
// moved, so there is nothing to verify.
class SimulatedMeter : public Meter {
 public:
  // The cluster's first node of type 0 is the machine itself; the last node of each type represents that type.
  SimulatedMeter(const NodeModel& node, std::vector<PairClass> classes, ClusterSpec cluster = {});

  bool simulated() const override { return true; }
  std::optional<std::string> why_unavailable(const Path& path) override;
  Bytes largest(const Path& path) const override;
  Bytes smallest(const Path& path) const override;
  int pairs_at_once(const Path& path) const override;
  Limit limit(const Path& path, Operation operation) const override;
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override;
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override;
  Seconds first_use(const Path& path) override;
  Seconds now() const override { return clock_; }

 private:
  const Timed& timed(const Path& path, Operation operation, Bytes bytes);
  Spot spot(const Path& path, Place place) const;
  const ClusterSpec& cluster_of(const Path& path) const;

  const NodeModel& node_;
  ClusterSpec cluster_, alone_;
  std::map<NodeType, int> nodes_;  // the one that stands for a type
  std::vector<PairClass> classes_;
  Seconds clock_ = 0;
  std::map<std::tuple<std::string, Operation, Bytes>, Timed> known_;
};

// The types of node that the machine can reach (its own, if there is a second such node), and the node that represents
// each.
std::map<NodeType, int> reached(const NodeModel& node, const ClusterSpec& cluster);

// `measure` and `tune` for a machine that is not here. The profile is labelled simulated.
Profile measure_simulated(const NodeModel& node, const ClusterSpec& cluster, const CampaignOptions& options,
                          const Profile* previous, const ProgressCallback& progress);
// The classes of pairs of the machine with the paths between them.
std::vector<Subject> simulated_subjects(const Topology& topology, const CampaignOptions& options);
// The subjects from it to another node, of its own type or of another one: over each pair of NICs. `rc` stands for all
// transports over InfiniBand and RoCE: in the model they do not differ.
std::vector<Subject> simulated_network_subjects(const NodeModel& here, const NodeModel& there,
                                                const CampaignOptions& options);

}  // namespace waywiser::sim
