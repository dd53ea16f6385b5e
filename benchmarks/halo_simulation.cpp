// Strong scaling of the programs of apps/ on clusters that are not here: simulated, never measured. The exchange is the
// halo exchange's own schedules on the simulator; the computation is the program's memory traffic at the GPU's memory
// rate (convolution: its operations at the data sheet's peak, if that takes longer), with no overlap of the two. Then
// the same with what each way of communicating hides behind the computation: see Way.
//   halo_simulation MACHINE NODES [PROGRAM]
// MACHINE: one of python/waywiser/machines, or a file, with a slash; NODES of it in a fat tree. PROGRAM: those whose
// names begin so.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "apps/grid.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/halo/halo_schedule.hpp"
#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/costs.hpp"

using namespace waywiser;

namespace {

// Ways of a program to communicate. All but `blocking` compute the cells inside while the ghosts travel.
enum class Way {
  host_staged,  // MPI on host memory: all bytes go through it, at best as one flow from GPU to GPU
  blocking,     // MPI on GPU memory, whose exchange nothing hides: because the program waits, or MPI does not go on
  gpu_aware,    // MPI on GPU memory
  direct,       // the stream waits for the ghosts, and the host only enqueues; between nodes hosts pass the bytes on
  fused,        // the kernel that computes puts and waits by itself: one-sided
};
constexpr std::pair<Way, const char*> ways[] = {{Way::host_staged, "host_staged"},
                                                {Way::blocking, "blocking"},
                                                {Way::gpu_aware, "gpu_aware"},
                                                {Way::direct, "direct"},
                                                {Way::fused, "fused"}};

constexpr HaloVariant compared[] = {HaloVariant::whole_field, HaloVariant::per_neighbor, HaloVariant::packed};

// Exchanges of one field, so many a step.
struct Exchanges {
  std::vector<std::int64_t> shape;
  HaloField field;
  double times;
};

struct App {
  std::string name;
  std::vector<std::int64_t> shape;
  bool periodic;  // in all dimensions; jacobi: in the first one
  HaloField field;
  int exchanges;             // a step
  double bytes, operations;  // of one cell in a step
  Bytes reduced;             // by an all-reduce in a step; 0: none
  bool corners = false;
  double hidden = 0;                 // share of the computation that can go on while one exchange's ghosts travel
  std::vector<Exchanges> more = {};  // exchanges besides
  double reductions = 1;             // a step
  Bytes gathered = 0;                // by an all-gather; 0: none
  double gathers = 0;                // a step
};

const HaloField number{DataType::float64, 1, false};

// The cavity of 8 million cells: iterations of the velocity and of the pressure in a step, as two GPUs had them.
constexpr double of_velocity = 74, of_pressure = 19;

// The levels of the multigrid with more than 131,072 cells have them spread over the ranks, with four exchanges on each
// in an iteration of the pressure; a level has a quarter of the cells of the one before. Rectangles stand for the
// ranks' parts. The cavity of 2 million cells is taken to need as many iterations.
std::vector<Exchanges> exchanges_of_flow(std::int64_t side) {
  std::vector<Exchanges> all;
  for (std::int64_t level = side; level * level > 131'072; level /= 2)
    all.push_back({{level, level}, number, 4 * of_pressure});
  const auto vectors = [](std::size_t components) { return HaloField{DataType::float64, components, false}; };
  all.push_back({{side, side}, vectors(3), of_velocity + 1 + 1});
  all.push_back({{side, side}, vectors(9), 1});
  return all;
}

App flow(const std::string& cells, std::int64_t side) {
  return {"navier_stokes " + cells + " million cells, cavity, float64",
          {side, side},
          false,
          number,
          1,
          32000,
          0,
          8,
          false,
          0,
          exchanges_of_flow(side),
          2 * of_pressure,
          Bytes{125'000} * 8,
          of_pressure};
}

// Bytes: what a loop loads and stores once. jacobi: a value in, one out. conjugate_gradient, tuned by hand: its update
// loads five vectors and stores four, its left side loads one and stores one, its sums load two. wilson_dslash: eight
// links and a spinor in (neighbouring spinors come from a cache), a spinor out. convolution: 2 * 16 * 16 * 9 operations
// in each of its three parts. navier_stokes: what one H100 could have loaded and stored at 0.89 of its 3.35 TB/s while
// it computed a step without its exchanges (85.9 ms, measured); two sums for each iteration of the pressure. Then each
// rank gets the level of 125,000 cells whole, and all coarser ones need no exchange.
App jacobi(std::int64_t side) {
  const std::string name = "jacobi " + std::to_string(side) + " x " + std::to_string(side) + " float32";
  return {name, {side, side}, false, {DataType::float32, 1, false}, 1, 8, 0, 0, false, 1};
}

App wilson(DataType type) {
  const std::string lattice = "wilson_dslash 64 x 64 x 64 x 128 ";
  const double bytes = 192.0 * static_cast<double>(bytes_of(type));
  return {lattice + std::string(name(type)), {128, 64, 64, 64}, true, {type, 24, false}, 1, bytes, 0, 0, false, 1};
}

const std::vector<App> programs = {
    jacobi(16384),
    jacobi(2048),
    {"conjugate_gradient 512 x 512 x 512 float64",
     {512, 512, 512},
     false,
     {DataType::float64, 1, false},
     1,
     104,
     0,
     16,
     false,
     16.0 / 104},
    wilson(DataType::float32),
    wilson(DataType::float64),
    wilson(DataType::float16),
    {"convolution 1024 x 1024 float32, 16 channels",
     {1024, 1024},
     false,
     {DataType::float32, 16, true},
     2,
     512,
     13824,
     9216,
     true,
     1.0 / 3},
    flow("8", 2828),
    flow("2", 1414),
};

// Operations per second in float32 by data sheet: Tesla V100 SXM2 (NVIDIA, 2018), A100 (NVIDIA, 2020).
double peak_of(const std::string& machine) {
  return machine == "lassen" ? 15.7e12 : machine == "dgx-a100" ? 19.5e12 : 0;
}

HaloGrid grid_of(const App& app, const std::vector<std::int64_t>& shape, int ranks) {
  const std::size_t dimensions = shape.size();
  std::vector<bool> periodic(dimensions, app.periodic);
  if (app.name.starts_with("jacobi")) periodic[0] = true;
  return even_grid(shape, std::vector<std::int64_t>(dimensions, 1), periodic, ranks_per_dimension(app.shape, ranks));
}

Seconds least(const std::function<Seconds(sim::DirectRdma)>& time, int nodes) {
  if (nodes == 1) return time(sim::DirectRdma::on);
  return std::min(time(sim::DirectRdma::on), time(sim::DirectRdma::off));
}

// The messages of an exchange, and the packing.
Seconds message_time(const sim::NodeModel& node, const sim::ClusterSpec& cluster, int ranks, const App& app,
                     const Exchanges& one, HaloVariant variant, sim::PeerCopies peers = sim::PeerCopies::best) {
  const HaloGrid grid = grid_of(app, one.shape, ranks);
  const auto schedule_of = [&](int rank) {
    const HaloPartition cells = app.corners ? grid_partition(grid, rank) : apps::face_partition(grid, rank);
    return halo_schedule(variant, boundary_of(cells, std::vector<HaloField>{one.field}));
  };
  const auto by = [&](sim::DirectRdma direct) {
    sim::World world(node, cluster);
    const sim::RankRoutes routes(world, {direct, false, peers});
    sim::StepCosts costs;
    costs.reduce_rate = node.reduce_rate();
    costs.copy_rate = 1.5 * costs.reduce_rate;  // two accesses instead of three
    return sim::ScheduleRun(world, routes, ranks, schedule_of, costs).run().seconds;
  };
  return peers == sim::PeerCopies::host ? by(sim::DirectRdma::off) : least(by, cluster.network.nodes);
}

Seconds exchange_time(const sim::NodeModel& node, const sim::ClusterSpec& cluster, int ranks, const App& app,
                      const Exchanges& one, HaloVariant variant) {
  return message_time(node, cluster, ranks, app, one, variant) + node.costs()["kernel.issue"] +
         node.costs()["kernel.finish"];
}

// Of the cells of a box, those that need no ghosts.
double inside(const App& app, const GridBox& box) {
  double share = 1;
  for (std::size_t i = 0; i < app.shape.size(); ++i)
    if (box.count[i] != app.shape[i])
      share *= static_cast<double>(std::max<std::int64_t>(0, box.count[i] - 2)) / static_cast<double>(box.count[i]);
  return share;
}

// What one exchange adds to a step beyond the computation. MPI is called once the host has seen the end of the kernel
// that packs, and a kernel starts after it; a stream between nodes tells its host, whose answer it polls; within a node
// one kernel carries the bytes. `behind`: the computation that goes on meanwhile.
Seconds added_by(Way way, const sim::NodeModel& node, const sim::ClusterSpec& cluster, int ranks, const App& app,
                 Seconds behind) {
  const sim::Costs& costs = node.costs();
  const bool by_hosts = way == Way::host_staged, by_mpi = by_hosts || way == Way::blocking || way == Way::gpu_aware;
  if (way == Way::blocking) behind = 0;
  const Exchanges one{app.shape, app.field, 1};
  const Seconds messages =
      message_time(node, cluster, ranks, app, one, way == Way::fused ? HaloVariant::per_neighbor : HaloVariant::packed,
                   by_hosts ? sim::PeerCopies::host : sim::PeerCopies::best);
  if (by_mpi) return 2 * costs["kernel.issue"] + costs["kernel.finish"] + std::max(0.0, messages - behind);
  if (way == Way::fused) return std::max(0.0, messages - behind);
  const Seconds start = cluster.network.nodes > 1 ? costs["kernel.finish"] : costs["kernel.hold"];
  return std::max(0.0, messages + start - behind);
}

Seconds collective_time(const sim::NodeModel& node, const sim::ClusterSpec& cluster, int ranks, Collective operation,
                        const std::string& algorithm, Bytes bytes) {
  if (bytes == 0 || ranks == 1) return 0;
  return least(
      [&](sim::DirectRdma direct) {
        sim::CollectiveTrial trial;
        trial.operation = operation;
        trial.algorithm = algorithm;
        trial.ranks = ranks;
        trial.bytes = bytes;
        trial.direct = direct;
        return sim::simulate(node, cluster, trial).seconds;
      },
      cluster.network.nodes);
}

void run(const std::string& machine, int most_nodes, const std::string& program = "") {
  const std::string package = WAYWISER_SOURCE_DIR "/python/waywiser/";
  const bool is_file = machine.find('/') != std::string::npos;
  const std::string file = is_file ? machine : package + "machines/" + machine + ".json";
  const Topology topology = topology_from_json(read_json(file), machine);
  const sim::NodeModel node(topology, sim::costs_of(topology, read_json(package + "simulator/parts.json"), "parts"));
  const int gpus = static_cast<int>(topology.ids("gpu").size());
  const double memory_rate = 3 * node.reduce_rate(), peak = peak_of(machine);
  for (const App& app : programs)
    for (int ranks = 1; ranks <= gpus * most_nodes; ranks *= 2) {
      if (!app.name.starts_with(program) || (app.corners && (ranks > 256 || peak == 0))) continue;
      sim::ClusterSpec cluster;
      cluster.network.kind = ranks > gpus ? "fat-tree" : "switch";
      cluster.network.nodes = std::max(1, ranks / gpus);
      const GridBox largest = grid_of(app, app.shape, ranks).boxes.front();
      double cells = 1;
      for (const std::int64_t side : largest.count) cells *= static_cast<double>(side);
      const Seconds compute = cells * std::max(app.bytes / memory_rate, peak == 0 ? 0 : app.operations / peak);
      const Seconds reduction =
          app.reductions * collective_time(node, cluster, ranks, Collective::all_reduce, "double_tree", app.reduced);
      const Seconds gathering =
          app.gathers * collective_time(node, cluster, ranks, Collective::all_gather, "direct", app.gathered);
      std::vector<Exchanges> exchanges = app.more;
      exchanges.push_back({app.shape, app.field, static_cast<double>(app.exchanges)});
      for (const HaloVariant variant : compared) {
        Seconds exchange = gathering;
        for (const Exchanges& each : exchanges)
          exchange += each.times * exchange_time(node, cluster, ranks, app, each, variant);
        std::printf(
            "{\"simulated\": true, \"machine\": \"%s\", \"app\": \"%s\", \"gpus\": %d, \"variant\": \"%s\", "
            "\"compute\": %.9g, \"exchange\": %.9g, \"reduction\": %.9g}\n",
            machine.c_str(), app.name.c_str(), ranks, std::string(name(variant)).c_str(), compute, exchange, reduction);
      }
      for (const auto& [way, called] : ways)
        if (app.hidden > 0 && ranks > 1)
          std::printf(
              "{\"simulated\": true, \"machine\": \"%s\", \"app\": \"%s\", \"gpus\": %d, \"way\": \"%s\", "
              "\"compute\": %.9g, \"exposed\": %.9g, \"reduction\": %.9g}\n",
              machine.c_str(), app.name.c_str(), ranks, called, compute,
              app.exchanges * added_by(way, node, cluster, ranks, app, compute * app.hidden * inside(app, largest)),
              reduction);
    }
}

}  // namespace

int main(int count, char** words) try {
  if (count == 1) {  // as `make bench` calls it
    run("lassen", 8);
    run("dgx-a100", 4);
    return 0;
  }
  const int nodes = count == 3 || count == 4 ? std::atoi(words[2]) : 0;
  if (nodes < 1 || nodes > 1024)
    throw Error(ErrorKind::invalid_input, "write a machine and 1 to 1024 nodes: lassen 8 [PROGRAM]");
  run(words[1], nodes, count > 3 ? words[3] : "");
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "halo_simulation: %s\n", error.what());
  return error.kind() == ErrorKind::invalid_input ? 2 : 1;
}
