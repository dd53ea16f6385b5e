#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "waywiser/policy/chooser.hpp"
#include "waywiser/transport/ucx/ucx_roads.hpp"

namespace waywiser {

// How messages of some sizes go between two machines: a path of the plan, each rail with its share of the bytes.
struct NetworkWay {
  Path path;  // of ucx or ucx_staged, as the machine sees it that the plan was made on
  std::vector<int> percents;

  // What UCX is to use at one end, for each rail. `turned`: the sender is on the other machine of the plan.
  std::vector<UcxRoad> roads(bool sends, bool turned) const;
  // UCX takes the bytes from the memory of a GPU itself, or brings them there.
  bool reads_gpus() const;
};

// What a plan of two machines says about messages between them. Numbers are the same wherever the plan is.
class NetworkWays {
 public:
  explicit NetworkWays(std::shared_ptr<const Chooser> chooser);  // nullptr: no plan, no ways

  const std::vector<NetworkWay>& all() const noexcept { return ways_; }
  // Places are this machine's and the other one's; of the plan only their kind is asked, as it holds the road between
  // the first GPUs. Nothing: the plan has no path, or the one that UCX is kept to anyway.
  std::optional<std::size_t> find(Place source, Place destination, Bytes bytes) const;

 private:
  std::shared_ptr<const Chooser> chooser_;
  std::vector<NetworkWay> ways_;
  std::map<const PlanRow*, std::size_t> way_of_;
};

}  // namespace waywiser
