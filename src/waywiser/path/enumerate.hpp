#pragma once

#include <string>
#include <vector>

#include "waywiser/path/path.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser {

struct Parameter {
  std::string name;
  std::vector<std::string> values;  // ascending
};

// Paths that differ only in the values of some parameters, over which a search runs.
struct Family {
  Path base;  // with the fixed parameters
  std::vector<Parameter> grid;
};

// Every candidate between two memories, in the order of mechanisms(); some may be unavailable, with a reason.
// `processes` 2: the two memories belong to two processes of this machine.
std::vector<Family> families(const Topology& topology, Place source, Place destination, int processes);

// Tells families() how many blocks of threads a GPU of the topology runs at once: a path has at most so many. Otherwise
// families() assumes those of an H100.
void set_multiprocessors(Topology& topology, Place gpu, int number);

// All combinations; the last parameter changes fastest. A family without a grid is one path.
std::vector<Path> expand(const Family& family);

}  // namespace waywiser
