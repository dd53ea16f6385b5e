#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "waywiser/base/units.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/device/place.hpp"

namespace waywiser {

class GpuConnections;
class KeptFailure;
class Lifeline;
class PeerMemory;
class Watchdog;

// What one rank has of its GPUs, each part made on first use.
class RankGpus {
 public:
  // The session's; `options` keeps the platform once it is open, `timeout` may change.
  RankGpus(JoinOptions& options, const Seconds& timeout, int rank);
  RankGpus(const RankGpus&) = delete;
  RankGpus& operator=(const RankGpus&) = delete;
  ~RankGpus();
  // All ranks have met. `any_sends`: whether any rank sends out of a GPU.
  void introduce(Lifeline& lifeline, bool any_sends);

  // This and the next three throw unavailable if this rank has joined without a platform.
  const std::shared_ptr<Platform>& shared_platform();
  Platform& platform() { return *shared_platform(); }
  GpuConnections& connections();
  PeerMemory& peer_memory();

  Watchdog& watchdog();
  // The process ends: reports failures on GPUs that nobody has seen yet.
  void report();
  // nullptr unless the program keeps its context when an operation on its GPU has failed.
  KeptFailure* kept_failure(Place gpu);
  // If true, a message may need the receiver to act before it completes.
  bool any_sends() const noexcept { return any_sends_; }
  // Waits until all enqueued operations have ended. Throws the error of a failed one that no call has thrown yet.
  void settle();
  // Nothing has failed, and nothing more is enqueued: closes the memory of other ranks, whose owners will free it soon.
  void let_go() noexcept;
  // All ranks have let go.
  void close_memory() noexcept;

  // Whether the last long message from `rank` into a GPU of this one came out of host memory.
  bool host_sends(int rank) const noexcept { return host_sends_.contains(rank); }
  void note_sender(int rank, bool host);

  // Why the last message between GPUs of this rank and `rank` was staged through the host; empty: none was.
  std::string why_staged(int rank) const;
  void note_staged(int rank, const std::string& why) { why_staged_[rank] = why; }

 private:
  JoinOptions& options_;
  std::mutex opening_;  // of the platform, which any thread may ask for
  const Seconds& timeout_;
  const int rank_;
  Lifeline* lifeline_ = nullptr;
  bool any_sends_ = false;
  std::map<int, std::unique_ptr<KeptFailure>> kept_;  // by GPU
  std::unique_ptr<Watchdog> watchdog_;
  std::unique_ptr<PeerMemory> peer_memory_;
  std::unique_ptr<GpuConnections> connections_;
  std::map<int, std::string> why_staged_;
  std::set<int> host_sends_;
};

}  // namespace waywiser
