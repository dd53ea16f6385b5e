#pragma once

#include <map>
#include <string>
#include <utility>
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

// Two GPUs that were measured to be at least a tenth slower than pairs like them.
struct OddPair {
  std::string a, b;
  BytesPerSecond rate = 0;     // of the slower direction
  BytesPerSecond typical = 0;  // the median of its class
};

// Bytes per second that were measured from one GPU to another.
using MeasuredRates = std::map<std::pair<std::string, std::string>, BytesPerSecond>;

struct Placement {
  std::vector<PlacedGpu> gpus;
  bool exact = true;                 // false: more than 16 GPUs, improved by swaps
  int pairs_without_nvlink = 0;      // nor xGMI; pairs of which nothing is known count
  int pairs_unknown = 0;             // of these, those of which nothing tells whether they have a link
  std::vector<OddPair> odd;          // of all GPUs of the machine, whether chosen or not
  double slowest_pair = 0;           // bytes per second; 0 for a single GPU or unknown rates
  double all_pairs = 0;              // sum over pairs
  std::vector<std::string> why;      // one line each
  std::string cuda_visible_devices;  // "0,3"
  std::string cores;
  std::vector<std::string> gres_conf;  // lines for Slurm, of all GPUs of the machine
};

// The `count` GPUs that are connected best. In this order: fewest pairs that are slower than those like them, or
// without NVLink or xGMI; fastest slowest pair, largest sum over pairs, most links, closest relations, closest NICs,
// lowest numbers. Exact up to 16 GPUs. Where pairs were measured their rates count; pairs like them count as their
// median. Throws invalid_input when the machine has fewer GPUs.
Placement place_gpus(const Topology& topology, int count, bool nics, const MeasuredRates& measured = {});

// One line per GPU: type, device file, cores and the number of links to each GPU, as gres.conf(5) wants them.
std::vector<std::string> gres_conf(const Topology& topology);

}  // namespace waywiser
