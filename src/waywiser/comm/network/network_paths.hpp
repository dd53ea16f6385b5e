#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "waywiser/policy/chooser.hpp"
#include "waywiser/transport/ucx/ucx_selection.hpp"

namespace waywiser {

// How messages of some sizes go between two machines: a path of the plan, each rail with its share of the bytes.
struct NetworkPath {
  Path path;  // of ucx or ucx_staged, as the machine sees it that the plan was made on
  std::vector<int> percents;

  // What UCX is to use at one end, for each rail. `turned`: the sender is on the other machine of the plan.
  std::vector<UcxSelection> selections(bool sends, bool turned) const;
  // UCX takes the bytes from the memory of a GPU itself, or brings them there.
  bool reads_gpus() const;
};

// How the plan sees two ranks on two machines.
struct PlanEnds {
  NodeType there = some_other_node;  // of the rows that are for them
  bool here = true;                  // this rank's machine stands where those rows begin; else where they lead
};

// What a plan says about messages between machines. Numbers are the same wherever the plan is.
class NetworkPaths {
 public:
  explicit NetworkPaths(std::shared_ptr<const Chooser> chooser);  // nullptr: no plan, no ways

  const std::vector<NetworkPath>& all() const noexcept { return ways_; }
  // Whether ranks need to know of which type their nodes are.
  bool tells_nodes_apart() const noexcept;
  // `mine`, `theirs`: types of the two nodes, some_other_node where that is not known. A type that the plan does not
  // lead to takes the roads of its first one. `lower`: this rank's number is: where nothing else tells whose machine
  // the plan was made on, it is that of the lower rank.
  PlanEnds ends(NodeType mine, NodeType theirs, bool lower) const;
  // For a message that this rank sends or receives. Places as their own machines name them; the first host and GPU
  // stand for those that the plan does not have. Nothing: the plan has no path, or the one that UCX is kept to anyway.
  std::optional<std::size_t> find(Place source, Place destination, Bytes bytes, const PlanEnds& ends, bool sends) const;

 private:
  const PlanRow* row_for(Place here, Place there, NodeType node, Bytes bytes) const;

  std::shared_ptr<const Chooser> chooser_;
  std::vector<NetworkPath> ways_;
  std::vector<NodeType> nodes_;  // that the plan leads to, its first one in front
  std::map<const PlanRow*, std::size_t> way_of_;
};

}  // namespace waywiser
