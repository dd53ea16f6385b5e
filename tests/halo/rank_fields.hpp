#pragma once

#include <memory>
#include <vector>

#include "tests/halo/made_up_domain.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/halo/halo_exchange.hpp"

namespace waywiser {

// The arrays of one rank of a domain, in host memory or on its GPU.
class RankFields {
 public:
  RankFields(Group& group, const MadeUpDomain& domain, bool on_gpu);

  const HaloPartition& partition() const { return domain_.partitions[static_cast<std::size_t>(rank_)]; }
  const std::vector<HaloArray>& arrays() const { return arrays_; }
  Stream& stream() { return *stream_; }  // of the GPU

  // The values before exchange number `start`.
  void fill(int start);
  // Throws unless they are what comes after it.
  void require_exchanged(int start);
  // Launches a captured exchange again and again, each time with other values, and throws unless all of them are right.
  void require_replays(Group& group, StreamGraph& exchange);

 private:
  void move(std::size_t field, std::vector<std::byte>& values, bool write);

  const MadeUpDomain& domain_;
  const int rank_;
  const bool on_gpu_;
  std::vector<std::vector<std::byte>> plain_;
  Memory memory_, pinned_;
  std::unique_ptr<Stream> stream_;
  std::vector<HaloArray> arrays_;
};

// Whether kernels serve it, where ranks share a GPU too. It is then in use.
bool direct_is_available(HaloExchange& exchange);

}  // namespace waywiser
