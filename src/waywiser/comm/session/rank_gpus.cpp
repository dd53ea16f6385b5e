#include "waywiser/comm/session/rank_gpus.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/comm/peer_memory/gpu_connections.hpp"
#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/comm/session/kept_failure.hpp"
#include "waywiser/comm/session/watchdog.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

RankGpus::RankGpus(JoinOptions& options, const Seconds& timeout, int rank)
    : options_(options), timeout_(timeout), rank_(rank) {}

RankGpus::~RankGpus() = default;

void RankGpus::introduce(Lifeline& lifeline, bool any_sends) {
  lifeline_ = &lifeline;
  any_sends_ = any_sends;
}

const std::shared_ptr<Platform>& RankGpus::shared_platform() {
  const std::lock_guard lock(opening_);
  if (!options_.platform && options_.open_platform) options_.platform = options_.open_platform();
  if (!options_.platform)
    throw Error(ErrorKind::unavailable, "this rank has joined without a platform: host memory only");
  return options_.platform;
}

GpuConnections& RankGpus::connections() {
  if (!connections_)
    connections_ = std::make_unique<GpuConnections>(platform(), peer_memory(), options_.chooser.get(), rank_ == 0);
  return *connections_;
}

PeerMemory& RankGpus::peer_memory() {
  if (!peer_memory_) peer_memory_ = std::make_unique<PeerMemory>(platform(), timeout_);
  return *peer_memory_;
}

Watchdog& RankGpus::watchdog() {
  if (!watchdog_) watchdog_ = std::make_unique<Watchdog>(*lifeline_, *options_.on_failure);
  return *watchdog_;
}

KeptFailure* RankGpus::kept_failure(Place gpu) {
  if (*options_.on_failure != OnFailure::raise) return nullptr;
  auto& kept = kept_[gpu.index];
  if (!kept) kept = std::make_unique<KeptFailure>(platform(), gpu);
  return kept.get();
}

void RankGpus::report() {
  if (watchdog_) watchdog_->report();
}

void RankGpus::settle() {
  if (watchdog_) watchdog_->settle();
}

void RankGpus::let_go() noexcept {
  if (watchdog_) watchdog_->let_go();
}

void RankGpus::close_memory() noexcept {
  if (peer_memory_) peer_memory_->close();
}

std::string RankGpus::why_staged(int rank) const {
  const auto found = why_staged_.find(rank);
  return found == why_staged_.end() ? "" : found->second;
}

void RankGpus::note_sender(int rank, bool host) {
  if (host)
    host_sends_.insert(rank);
  else
    host_sends_.erase(rank);
}

}  // namespace waywiser
