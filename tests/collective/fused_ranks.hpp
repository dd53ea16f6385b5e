#pragma once

#include <memory>
#include <vector>

#include "waywiser/collective/fused/fused_collective.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {

constexpr FusedOptions small{256, 8192, 8192, 20};

// The ranks of one process, a virtual GPU each.
class FusedRanks {
 public:
  explicit FusedRanks(int ranks, const FusedOptions& options = small, Seconds delay = 0) {
    VirtualMachine machine;
    machine.gpus = ranks;
    machine.delay = delay;
    platform_ = open_virtual_platform(machine);
    for (int rank = 0; rank < ranks; ++rank) {
      streams_.push_back(platform_->open_stream(gpu(rank)));
      memories_.push_back(platform_->allocate(gpu(rank), FusedCollective::bytes_for(ranks, options), Allocation::gpu));
      members_.push_back(
          std::make_unique<FusedCollective>(*platform_, stream(rank), rank, ranks, options, memories_.back().region()));
      for (int peer = 0; peer < ranks; ++peer)
        if (peer != rank) platform_->set_peer_access(rank, peer, true);
    }
    std::vector<Region> landings;
    for (const auto& member : members_) landings.push_back(member->landing());
    for (const auto& member : members_) member->connect(landings);
  }

  int ranks() const { return static_cast<int>(members_.size()); }
  Stream& stream(int rank) { return *streams_[static_cast<std::size_t>(rank)]; }
  FusedCollective& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  Platform& platform() { return *platform_; }

 private:
  std::unique_ptr<Platform> platform_;
  std::vector<Memory> memories_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<FusedCollective>> members_;
};

}  // namespace waywiser
