#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/transport/ucx/ucx_selection.hpp"

namespace waywiser {

// The path of the plan for messages of some sizes between two machines; each rail has its share of the bytes.
struct NetworkPath {
  Path path;  // ucx or ucx_staged, as seen from the machine on which the plan was made
  std::vector<int> percents;

  // The UCX settings of one end, for each rail. `turned`: the sender is on the plan's other machine.
  std::vector<UcxSelection> selections(bool sends, bool turned) const;
  // UCX itself reads or writes the memory of a GPU.
  bool reads_gpus() const;
};

// How the plan sees two ranks on two machines.
struct PlanEnds {
  NodeType there = some_other_node;  // the type of the rows that apply
  bool here = true;                  // true: this rank's machine is where those rows begin; false: where they end
};

// The plan's paths for messages between machines. Their numbers are equal at all ranks that have the plan.
class NetworkPaths {
 public:
  explicit NetworkPaths(std::shared_ptr<const Chooser> chooser);  // nullptr: no plan, no ways

  const std::vector<NetworkPath>& all() const noexcept { return ways_; }
  // Whether ranks need the types of their nodes.
  bool tells_nodes_apart() const noexcept;
  // `mine`, `theirs`: types of the two nodes, some_other_node if unknown. For a type without rows the rows of the
  // plan's first type are used. `lower`: whether this rank has the lower number: if nothing else tells on whose machine
  // the plan was made, it is the lower rank's.
  PlanEnds ends(NodeType mine, NodeType theirs, bool lower) const;
  // For a message that this rank sends or receives. Places are named as on their own machines; the first host and GPU
  // represent those that the plan does not have. Empty: the plan has no path, or only the one that UCX is restricted to
  // anyway.
  std::optional<std::size_t> find(Place source, Place destination, Bytes bytes, const PlanEnds& ends, bool sends) const;

 private:
  const PlanRow* row_for(Place here, Place there, NodeType node, Bytes bytes) const;

  std::shared_ptr<const Chooser> chooser_;
  std::vector<NetworkPath> ways_;
  std::vector<NodeType> nodes_;  // types in the plan, its first one in front
  std::map<const PlanRow*, std::size_t> way_of_;
};

// Of this rank and each other rank.
std::vector<PlanEnds> ends_of(const NetworkPaths& paths, const std::vector<Introduction>& ranks, std::uint32_t me);

}  // namespace waywiser
