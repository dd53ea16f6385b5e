#pragma once

#include <memory>
#include <vector>

#include "waywiser/measure/measuring_threads.hpp"
#include "waywiser/measure/two_process_meter.hpp"

namespace waywiser {

class StartBarrier;

// Measures between two processes: one pair by a TwoProcessMeter; all pairs of a class at once (Operation::loaded) by
// one meter per pair, each with its own peer, released together. Peers and their open connections are kept for other
// paths and classes.
class LoadedMeter : public Meter {
 public:
  using MakeMeter = std::function<std::unique_ptr<TwoProcessMeter>()>;
  // `make` is called once for each pair that moves at once, at most `most` times; the meters use `platform`.
  LoadedMeter(const Platform& platform, MakeMeter make, std::vector<PairClass> classes, int most);

  bool simulated() const override { return meters_.front()->simulated(); }
  std::optional<std::string> why_unavailable(const Path& path) override;
  Bytes largest(const Path& path) const override;
  int pairs_at_once(const Path& path) const override { return static_cast<int>(together(path).size()); }
  Limit limit(const Path& path, Operation operation) const override;
  std::optional<std::string> verify(const Path& path, Operation operation, Bytes bytes) override;
  // `loaded`: from the common start until the last pair has ended.
  Sample take(const Path& path, Operation operation, Bytes bytes, int repetitions) override;
  Seconds first_use(const Path& path) override { return meters_.front()->first_use(path); }

  // The peers of the existing meters; -1 if a meter has none at the moment.
  std::vector<pid_t> peers() const;

 private:
  using Both = TwoProcessMeter::Both;

  std::vector<Path> together(const Path& path) const;
  Bytes room_of_pair(const std::vector<Path>& paths) const;
  const std::vector<SpinCpus>& spin_cpus_of(const std::vector<Path>& paths);
  void make_ready(const std::vector<Path>& paths, const PairRun& run);
  std::vector<Both> move(const std::vector<Path>& paths, const PairRun& run);

  const Platform& platform_;
  MakeMeter make_;
  std::vector<PairClass> classes_;
  std::size_t most_;
  std::vector<std::unique_ptr<TwoProcessMeter>> meters_;  // the first one also measures one pair alone
  mutable std::map<Place, Bytes> free_at_start_;
  std::map<std::string, std::vector<SpinCpus>> spin_cpus_;  // by the pairs
  std::uint64_t turn_ = 0;
  MeasuringThreads threads_;
};

// How many pairs may move at once between processes: two cores per pair, and few enough processes that starting them
// does not take longer than measuring.
int most_pairs_at_once(unsigned cpus);

}  // namespace waywiser
