#pragma once

#include <array>
#include <vector>

#include "waywiser/collective/cost.hpp"

namespace waywiser {

// A node of a binary tree; depth 0 is the root.
struct TreeNode {
  int parent = -1;
  bool right = false;         // whether it is the right child
  std::vector<int> children;  // left before right
  int depth = 0;
};

// Two trees of `nodes` nodes in which no inner node of one is an inner node of the other (except for one node if their
// number is odd), so that each link carries half of the data. Nodes count from 0. Depth: log2_floor(nodes). After
// Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009).
TreeNode node_of_tree(int tree, int nodes, int node);
int root_of_tree(int tree, int nodes);

}  // namespace waywiser
