#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "waywiser/comm/host_pool.hpp"
#include "waywiser/device/shared_region.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

class Chooser;
struct PlanRow;

// How the bytes of one rank's GPUs get to other ranks of this machine: the plan's paths, opened once; what others have
// shared, opened once.
class GpuRoads {
 public:
  // Without a plan a kernel moves few bytes and a copy engine many, or a pipeline through the host where no GPU reaches
  // the other.
  GpuRoads(Platform& platform, const Chooser* chooser, bool says_so);

  struct Road {
    std::unique_ptr<Transport> transport;
    std::unique_ptr<Stream> stream;
  };
  // A one-sided path for the pair and size whose kernels, if it has any, run on `worker`: what other ranks have shared
  // is opened for one GPU of this rank. The plan's where that is such a path. Throws unavailable.
  Road& road(Place source, Place destination, Bytes bytes, Place worker);
  // Where that path is a kernel's: the same by the destination's GPU, which reads. Else nullptr. Throws unavailable.
  Road* reading_road(Place source, Place destination, Bytes bytes);
  // What another process has shared, for copies of `user`. Throws unavailable or device.
  Region open(const SharedRegion& shared, Place user);
  // For copies between a GPU and its host.
  Stream& stream(Place gpu);
  HostPool& pool() { return pool_; }
  // Until the session has closed, when no other rank writes to it any more.
  void keep(std::shared_ptr<void> memory) { kept_.push_back(std::move(memory)); }

 private:
  struct Opened {
    Memory memory;
    std::array<std::byte, 64> opaque{};
    Bytes bytes = 0;
    std::uint64_t used = 0;
  };
  using OpenedKey = std::tuple<std::uint64_t, std::uint64_t, int>;  // process, address, user

  struct Copy {
    Place source, destination, worker;
    bool small = false;
    auto operator<=>(const Copy&) const = default;
  };
  Path choose(const PlanRow* row, const Copy& copy) const;
  Path choose_without_plan(const Copy& copy) const;
  Road& open(const Path& path);
  void forget_oldest();

  Platform& platform_;
  const Chooser* chooser_;
  bool says_so_;
  std::map<std::string, Road> roads_;
  std::map<std::pair<const PlanRow*, Copy>, Road*> known_;             // of roads_; no row: without a plan
  std::map<std::tuple<const PlanRow*, Place, Place>, Road*> reading_;  // of roads_
  std::map<OpenedKey, Opened> opened_;
  std::map<Place, std::unique_ptr<Stream>> streams_;
  HostPool pool_;
  std::uint64_t uses_ = 0;
  std::vector<std::shared_ptr<void>> kept_;
};

}  // namespace waywiser
