#include "waywiser/collective/double_tree.hpp"

namespace waywiser {
namespace {

// The tree in order of positions 1 to `nodes`: odd positions are leaves, the root is the largest power of two.
int child_of(int position, int nodes, bool right) {
  for (int half = (position & -position) / 2; half > 0; half /= 2) {
    const int child = right ? position + half : position - half;
    if (child <= nodes) return child;
  }
  return 0;
}

// The second tree is the first one mirrored, or, for an odd number of nodes, shifted by one.
int position_of(int tree, int nodes, int node) {
  if (tree == 0) return node + 1;
  return nodes % 2 == 0 ? nodes - node : (node + 1) % nodes + 1;
}

int node_at(int tree, int nodes, int position) {
  if (tree == 0) return position - 1;
  return nodes % 2 == 0 ? nodes - position : (position + nodes - 2) % nodes;
}

}  // namespace

int root_of_tree(int tree, int nodes) { return node_at(tree, nodes, 1 << log2_floor(nodes)); }

TreeNode node_of_tree(int tree, int nodes, int node) {
  const int wanted = position_of(tree, nodes, node);
  TreeNode found;
  for (int at = 1 << log2_floor(nodes); at != wanted; ++found.depth) {
    found.parent = node_at(tree, nodes, at);
    found.right = wanted > at;
    at = child_of(at, nodes, found.right);
  }
  for (const bool right : {false, true})
    if (const int child = child_of(wanted, nodes, right); child != 0)
      found.children.push_back(node_at(tree, nodes, child));
  return found;
}

}  // namespace waywiser
