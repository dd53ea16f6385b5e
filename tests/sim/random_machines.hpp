#pragma once

#include <random>
#include <string>

#include "tests/base/random_cases.hpp"
#include "tests/sim/package_machines.hpp"
#include "tests/topology/made_up_machines.hpp"
#include "waywiser/collective/collective_algorithm.hpp"
#include "waywiser/sim/collective_run.hpp"

// Machines, clusters and collectives by chance: the same number gives the same one.
namespace waywiser::sim {

class RandomMachine {
 public:
  explicit RandomMachine(unsigned seed) : chance_(seed) {
    topology.name = "random " + std::to_string(seed);
    sockets_ = between(1, 2);
    gpus_ = one_of<int>({1, 2, 3, 4, 6, 8});
    for (int socket = 0; socket < sockets_; ++socket) add_socket(socket);
    if (sockets_ == 2) rate("cpu0", "cpu1", "socket", 2e10, 1e11);
    for (int gpu = 0; gpu < gpus_; ++gpu) add_gpu(gpu);
    add_nvlinks();
    add_nics();
  }

  ClusterSpec cluster() {
    ClusterSpec spec;
    spec.in_network_reduction = true;
    spec.network.kind = one_of<std::string>({"switch", "fat-tree", "rail-optimised", "dragonfly", "torus"});
    spec.network.nodes = between(1, 5);
    spec.network.taper = one_of<double>({1, 2});
    spec.network.radix = one_of<int>({4, 8, 36});
    if (spec.network.kind == "dragonfly") spec.network.shape = {3, 2, 1};
    if (spec.network.kind == "torus") spec.network.shape = {spec.network.nodes};
    if (spec.network.nodes == 4 && spec.network.kind == "torus") spec.network.shape = {2, 2};
    if (nvswitch_ && between(0, 2) == 0) spec.nvlink_domain = gpus_ * between(1, 3);
    return spec;
  }

  CollectiveTrial trial() {
    const CollectiveAlgorithm* row = nullptr;
    do row = &algorithms()[chance_() % algorithms().size()];
    while (row->kernel);  // for one machine
    const CollectiveAlgorithm& algorithm = *row;
    CollectiveTrial made;
    made.operation = algorithm.operation;
    made.algorithm = std::string(algorithm.name);
    if (algorithm.operation == Collective::all_reduce && between(0, 2) == 0)
      made.algorithm = one_of<std::string>({"in_network", "nccl_ring", "nccl_tree"});
    made.bytes = (Bytes{1} << between(2, 27)) + static_cast<Bytes>(4 * between(0, 9));
    made.direct =
        one_of<DirectRdma>({DirectRdma::off, DirectRdma::on, DirectRdma::best, DirectRdma::near, DirectRdma::write});
    return made;
  }

  int between(int low, int high) { return low + static_cast<int>(chance_() % static_cast<unsigned>(high - low + 1)); }

  Topology topology;

 private:
  template <typename T>
  T one_of(const std::vector<T>& choices) {
    return choices[chance_() % choices.size()];
  }

  // Both directions; good software reaches 0.9 of it.
  void rate(const std::string& a, const std::string& b, const std::string& kind, double low, double high,
            int count = 1) {
    made_up::join(topology, a, b, kind, 4, kind == "pcie" ? 16 : 0, count);
    const double share = static_cast<double>(chance_() % 1000) / 1000;
    topology.links.back().nominal = count * (low + share * (high - low));
    topology.links.back().achievable = 0.9 * *topology.links.back().nominal;
  }

  void add_socket(int socket) {
    const std::string number = std::to_string(socket);
    made_up::add(topology, "host" + number, "host", socket);
    topology.devices.back().cores = socket == 0 ? "0-15" : "16-31";
    made_up::add(topology, "cpu" + number, "cpu", -1);
    made_up::add(topology, "root" + number, "root", socket);
    rate("host" + number, "cpu" + number, "memory", 4e10, 4e11);
    made_up::join(topology, "cpu" + number, "root" + number, "internal");
    if (between(0, 1) == 0) return;
    made_up::add(topology, "switch" + number, "switch", socket);
    rate("root" + number, "switch" + number, "pcie", 1.5e10, 6.4e10);
  }

  // A PCIe switch of the socket where it has one, or else its root complex.
  std::string parent(int socket) const {
    const std::string below = "switch" + std::to_string(socket);
    return topology.find(below) != nullptr ? below : "root" + std::to_string(socket);
  }

  void add_gpu(int gpu) {
    const std::string id = "gpu" + std::to_string(gpu);
    const int socket = gpu * sockets_ / gpus_;
    made_up::add(topology, id, "gpu", socket);
    topology.devices.back().attributes["memory_bandwidth"] = std::to_string(between(300, 5000)) + "000000000";
    rate(parent(socket), id, "pcie", 1.5e10, 6.4e10);
  }

  void add_nvlinks() {
    const int kind = between(0, 2);
    nvswitch_ = kind == 1 && gpus_ > 1;
    if (nvswitch_) made_up::add(topology, "nvswitch0", "nvswitch", -1);
    for (int a = 0; a < gpus_; ++a) {
      if (nvswitch_) rate("gpu" + std::to_string(a), "nvswitch0", "nvlink", 2.5e10, 2.6e10, 6);
      for (int b = a + 1; kind == 2 && b < gpus_; ++b)
        if (between(0, 1) == 0)
          rate("gpu" + std::to_string(a), "gpu" + std::to_string(b), "nvlink", 2e10, 2.5e10, between(1, 3));
    }
  }

  void add_nics() {
    made_up::add(topology, "network0", "network", -1);
    if (between(0, 3) == 0) topology.devices.back().name = "Ethernet";  // no RDMA
    const int nics = between(1, std::max(2, gpus_));
    for (int nic = 0; nic < nics; ++nic) {
      const std::string id = "nic" + std::to_string(nic);
      made_up::add(topology, id, "nic", nic * sockets_ / nics);
      rate(parent(nic * sockets_ / nics), id, "pcie", 1.5e10, 6.4e10);
      rate(id, "network0", "network", 1.25e10, 2.4e10);
    }
  }

  std::mt19937 chance_;
  int sockets_ = 1, gpus_ = 1;
  bool nvswitch_ = false;
};

}  // namespace waywiser::sim
