#pragma once

#include <string>
#include <vector>

#include "waywiser/topology/topology.hpp"

namespace waywiser {

struct PlacedGpu {
  std::string gpu;
  int index = 0;  // as in CUDA_VISIBLE_DEVICES
  int numa = -1;
  std::string cores;
  std::string nic;  // the closest one, shared out evenly; empty when not asked for or none
  std::string nic_relation;
};

struct Placement {
  std::vector<PlacedGpu> gpus;
  bool exact = true;  // false: more than 16 GPUs, improved by swaps
  int pairs_without_nvlink = 0;
  double slowest_pair = 0;           // bytes per second; 0 for a single GPU or unknown rates
  double all_pairs = 0;              // sum over pairs
  std::vector<std::string> why;      // one line each
  std::string cuda_visible_devices;  // "0,3"
  std::string cores;
  std::vector<std::string> gres_conf;  // lines for Slurm, of all GPUs of the machine
};

// The `count` GPUs that are connected best. In this order: fewest pairs without NVLink, fastest slowest pair, largest
// sum over pairs, closest relations, closest NICs, lowest numbers. Exact up to 16 GPUs.
// Throws invalid_input when the machine has fewer GPUs.
Placement place_gpus(const Topology& topology, int count, bool nics);

// One line per GPU: type, device file, cores and the number of links to each GPU, as gres.conf(5) wants them.
std::vector<std::string> gres_conf(const Topology& topology);

}  // namespace waywiser
