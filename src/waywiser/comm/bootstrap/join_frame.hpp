#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/bootstrap/rank_tree.hpp"

namespace waywiser {

// What a rank sends when it joins.
struct Joining {
  Introduction mine;
  int branches = usual_branches;
  std::string listens = {};  // where the ranks below it come to; empty: there are none, or within the machine
};
std::vector<std::byte> bytes_of(const Joining& joining);
Joining read_joining(WireReader& reader);  // throws invalid_input

// Why a rank does not fit a group whose root is `root`; empty: it fits.
std::string difference(const Joining& root, const Joining& other);

}  // namespace waywiser
