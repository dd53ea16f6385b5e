#pragma once

#include <map>
#include <string>
#include <vector>

#include "waywiser/measure/connections.hpp"
#include "waywiser/measure/measuring_threads.hpp"
#include "waywiser/measure/meter.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

// Times paths within this process. docs/measuring.md defines each operation.
class OneProcessMeter : public Meter {
 public:
  // `classes` says which pairs run at once for Operation::loaded.
  OneProcessMeter(Platform& platform, const Topology& topology, std::vector<PairClass> classes);

  bool simulated() const override { return platform_.backend() == "virtual_gpu"; }
  std::optional<std::string> why_unavailable(const Path& path) override;
  Bytes largest(const Path& path) const override;
  int pairs_at_once(const Path& path) const override;
  Limit limit(const Path& path, Operation operation) const override;
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override;
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override;
  Seconds first_use(const Path& path) override;

 private:
  struct Numbered {
    Path path;
    int number;
  };
  // The transfers that run at once: the path; or the path and its reverse; or the path for every pair of the class.
  std::vector<Numbered> together(const Path& path, Operation operation) const;
  std::optional<std::string> try_verify(const Path& path, Operation operation, Bytes bytes);
  Sample try_take(const Path& path, Operation operation, Bytes bytes, int repetitions);
  std::vector<PathConnection*> connections(const std::vector<Numbered>& all, Bytes bytes, int slots);

  Platform& platform_;
  const Topology& topology_;
  std::vector<PairClass> classes_;
  mutable ConnectionStore store_;
  mutable std::map<std::string, Limit> limits_;
  MeasuringThreads threads_;
};

}  // namespace waywiser
