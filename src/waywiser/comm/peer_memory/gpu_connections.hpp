#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "waywiser/comm/peer_memory/peer_memory.hpp"
#include "waywiser/transport/transport.hpp"
#include "waywiser/transport/ucx_staged/host_pool.hpp"

namespace waywiser {

class Chooser;
struct PlanRow;

// How bytes of this rank's GPUs reach other ranks of this machine: the plan's paths and the memory that others share,
// each opened once.
class GpuConnections {
 public:
  // Without a plan a kernel moves few bytes and a copy engine many; a pipeline through the host if no GPU reaches the
  // other.
  GpuConnections(Platform& platform, PeerMemory& peers, const Chooser* chooser, bool says_so);

  struct Connection {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Stream> stream;
  };
  // A one-sided path for the pair and size, the plan's if it is one-sided. Its kernels, if any, run on `worker`, for
  // which shared memory of other ranks is opened. Throws unavailable.
  Connection& connection(Place source, Place destination, Bytes bytes, Place worker);
  // The same path run by the destination's GPU, which reads, if it is a kernel; else nullptr. Throws unavailable.
  Connection* reading_connection(Place source, Place destination, Bytes bytes);
  // Memory that another process has shared, for copies of `user`. Throws unavailable or device.
  PeerMemory::Part open(const SharedRegion& shared, Place user) { return peers_.open_and_keep(shared, user); }
  // For copies between a GPU and its host.
  Stream& stream(Place gpu);
  HostPool& pool() { return pool_; }

 private:
  struct Copy {
    Place source, destination, worker;
    bool small = false;
    auto operator<=>(const Copy&) const = default;
  };
  Path choose(const PlanRow* row, const Copy& copy) const;
  Path choose_without_plan(const Copy& copy) const;
  Connection& open(const Path& path);

  Platform& platform_;
  PeerMemory& peers_;
  const Chooser* chooser_;
  bool says_so_;
  std::map<std::string, Connection> connections_;
  std::map<std::pair<const PlanRow*, Copy>, Connection*> known_;             // of roads_; no row: without a plan
  std::map<std::tuple<const PlanRow*, Place, Place>, Connection*> reading_;  // of roads_
  std::map<Place, std::unique_ptr<Stream>> streams_;
  HostPool pool_;
};

}  // namespace waywiser
