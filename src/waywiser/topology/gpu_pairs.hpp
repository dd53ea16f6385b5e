#pragma once

#include <string>
#include <utility>
#include <vector>

#include "waywiser/topology/graph.hpp"
#include "waywiser/topology/placement.hpp"

namespace waywiser {

// The connection of two GPUs and its rate: as measured, else as pairs like them, else from the links.
struct GpuPair {
  GpuLinks links;
  bool links_known = true;
  int distance = 0;    // of the relation
  double rate = 0;     // bytes per second, 0: unknown; measured rates close to typical count as typical
  double typical = 0;  // the median of the measured rates in its class
  bool measured = false, odd = false;
};

// All pairs of the GPUs of a machine.
class GpuPairs {
 public:
  GpuPairs(const Topology& topology, const std::vector<std::string>& gpus, const MeasuredRates& measured);

  const GpuPair& at(std::size_t i, std::size_t j) const { return pairs_[i * gpus_.size() + j]; }
  std::string name(std::size_t i, std::size_t j) const { return gpus_[i] + " - " + gpus_[j]; }
  std::vector<std::pair<std::size_t, std::size_t>> odd() const;
  bool all_links_known() const;
  std::string link_words() const;                  // "NVLink", or "xGMI" where there is some
  std::string slurm_links(std::size_t gpu) const;  // "-1,4,4"

 private:
  GpuPair& pair(std::size_t i, std::size_t j) { return pairs_[i * gpus_.size() + j]; }
  void look(const Graph& graph, bool beside_measured);
  void enter(const Topology& topology, const MeasuredRates& measured);

  std::vector<std::string> gpus_;
  std::vector<GpuPair> pairs_;
};

bool is_amd(const Device& gpu);

}  // namespace waywiser
