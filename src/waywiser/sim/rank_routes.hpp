#pragma once

#include <cstdint>
#include <vector>

#include "waywiser/sim/world.hpp"

namespace waywiser::sim {

// How a rank's bytes get into a network card; through host memory if the machine file says that its GPU has no other
// way, or the card no RDMA.
enum class DirectRdma : std::uint8_t {
  off,    // through host memory
  on,     // the NIC reads and writes GPU memory
  best,   // whichever has the faster slowest hop
  near,   // on where GPU and NIC share a PCIe switch (up to PXB), else off: NCCL's default
  write,  // the NIC writes GPU memory, and reads host memory: NCCL_NET_GDR_READ=0
};

// How GPUs of a node exchange bytes through a root complex that limits them. Without peer access they always go through
// host memory.
enum class PeerCopies : std::uint8_t {
  best,    // directly, unless the way through host memory has the faster slowest hop
  staged,  // through host memory where a root complex limits them: faster where several copies share it
  host,    // always through host memory, as in programs that give host memory to MPI
};

// Which GPUs of a node have ranks, and by which NICs.
struct Seats {
  std::vector<std::string> order{};  // another order of the GPUs of a node, or only some; empty: all, as numbered
  // Where more NICs than GPUs are close to them, each GPU has another one each turn, until all have been used.
  int turn = 0;
};

// How ranks use a cluster.
struct RankOptions {
  DirectRdma direct = DirectRdma::best;
  // A message to another rail first goes over NVLink to the GPU beside the NIC of that rail, as NCCL's PXN does.
  bool pxn = false;
  PeerCopies peers = PeerCopies::best;
  int first_node = 0;  // the node of rank 0
};

// The routes between the GPUs of a cluster, rank r on GPU r mod (GPUs of a node) of node r / (GPUs of a node), or on
// the GPU of that place in the order. Without GPUs a rank is a node's first memory. All nodes have as many ranks.
class RankRoutes {
 public:
  // `seats`: of each type of node of the world, or of all. Throws invalid_input: a GPU twice, or no GPU of the node;
  // unavailable: nodes with different numbers of GPUs.
  RankRoutes(World& world, const RankOptions& options, const std::vector<Seats>& seats = {{}});
  // True if PeerCopies::staged would give another route between two ranks of a node.
  bool could_be_staged() const;
  int ranks_of_node() const noexcept { return static_cast<int>(types_.front().devices.size()); }
  int node_of(int rank) const noexcept { return options_.first_node + rank / ranks_of_node(); }
  const NodeModel& model_of(int rank) const { return world_.node(node_of(rank)); }
  // Hops and latency of one message, its start included.
  TimedRoute route(int from, int to) const;
  const std::string& device(int rank) const { return of(rank).devices[place(rank)]; }
  const std::string& nic(int rank) const { return of(rank).nics[place(rank)]; }
  // From a rank's memory to its NIC and back, as `direct` says.
  TimedRoute to_nic(int rank) const;
  TimedRoute from_nic(int rank) const;
  BytesPerSecond slowest(const TimedRoute& route) const;

 private:
  TimedRoute within(int node, const std::string& from, const std::string& to) const;
  TimedRoute between_gpus(int node, const std::string& from, const std::string& to) const;
  TimedRoute through_host(int node, const std::string& from, const std::string& to) const;
  TimedRoute staged(int node, const std::string& from, const std::string& to) const;
  int sender(int from, int to) const;  // the rank whose NIC sends
  // By GPUDirect RDMA or through host memory.
  TimedRoute chosen(int rank, bool reads, const TimedRoute& direct, const TimedRoute& staged) const;

  struct OfType {
    std::vector<std::string> devices, nics;
  };
  OfType seated(std::size_t type, const Seats& seats) const;
  std::size_t place(int rank) const { return static_cast<std::size_t>(rank % ranks_of_node()); }
  const OfType& of(int rank) const {
    return types_.size() == 1 ? types_.front() : types_[static_cast<std::size_t>(world_.type(node_of(rank)))];
  }

  World& world_;
  RankOptions options_;
  std::vector<OfType> types_;
};

}  // namespace waywiser::sim
