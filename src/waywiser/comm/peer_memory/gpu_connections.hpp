#pragma once

#include <map>
#include <memory>
#include <set>
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
    Path path;
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Connection> beside;
  };
  // The plan's best path for the pair and size that this rank runs alone on `worker`, for which shared memory of other
  // ranks is opened. If the plan has none, a path is taken as without a plan, and a line on standard error says so.
  // Throws unavailable.
  Connection& connection(Place source, Place destination, Bytes bytes, Place worker);
  // A second one by the path of the first: what the two move goes at the same time. Throws unavailable.
  Connection& beside(Connection& first);
  // The same for the destination's GPU, which reads, if that is by the mechanism of the plan's fastest path; without a
  // plan a kernel. nullptr: there is none, or it does not reach the source. Throws unavailable.
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
  Path choose(const PlanRow* row, const Copy& copy);
  Path choose_without_plan(const Copy& copy) const;
  static Path by_kernel(const Copy& copy);
  void note_not_planned(const PlanRow* row, const Copy& copy, const Path& taken);
  Connection& open(const Path& path);
  void fill(Connection& connection, const Path& path);

  Platform& platform_;
  PeerMemory& peers_;
  const Chooser* chooser_;
  bool says_so_;
  std::map<std::string, Connection> connections_;
  std::set<std::pair<Place, Place>> not_planned_;
  std::map<std::pair<const PlanRow*, Copy>, Connection*> known_;             // of connections_; no row: without a plan
  std::map<std::tuple<const PlanRow*, Place, Place>, Connection*> reading_;  // of connections_
  std::map<Place, std::unique_ptr<Stream>> streams_;
  HostPool pool_;
};

}  // namespace waywiser
