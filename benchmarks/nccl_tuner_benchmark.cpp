// What the tuner costs a collective of NCCL: nanoseconds for people on standard error, JSON on standard output. The
// argument is libnccl-tuner-waywiser.so; without one, that of the package beside the sources.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"
#include "waywiser/policy/plan.hpp"
#include "waywiser/topology/discover.hpp"
#include "waywiser/topology/topology.hpp"

extern "C" [[gnu::visibility("default")]] int ncclGetVersion(int* version) {
  *version = 22705;
  return 0;
}

namespace {

using namespace waywiser;

// Version 4 of the interface.
struct Tuner {
  const char* name;
  int (*init)(std::size_t ranks, std::size_t nodes, void (*log)(), void** context);
  int (*get_coll_info)(void*, int, std::size_t, int, float**, int, int, int, int*);
  int (*destroy)(void*);
};

Plan large_plan() {
  Plan plan{.fingerprint = fingerprint(discover()), .machine = "m", .backend = "cuda", .simulated = false, .rows = {}};
  for (const char* operation : {"broadcast", "reduce", "all_gather", "reduce_scatter", "all_reduce"})
    for (int range = 0; range < 16; ++range) {
      PlanRow row{{.operation = operation, .memory = "gpu", .ranks = 8, .partner = "NCCL 2.27.5"}};
      row.from_bytes = range == 0 ? 0 : Bytes{16} << (2 * range);
      row.to_bytes = range == 15 ? no_end : (Bytes{16} << (2 * range + 2)) - 1;
      row.ways = {{parse_way(range % 2 == 0 ? "Ring(protocol=LL)" : "Tree(channels=8,protocol=Simple)")}};
      plan.rows.push_back(row);
    }
  return plan;
}

// A look-up takes less than reading the clock does, so a sample is a hundred of them.
std::vector<double> samples(const Tuner& tuner, void* context) {
  std::mt19937_64 random(1);  // NOLINT(bugprone-random-generator-seed): each run asks the same
  std::vector<double> found(20'000);
  float costs[7][3];
  for (double& sample : found) {
    std::size_t bytes[100];
    for (std::size_t& each : bytes) each = random() >> (30 + random() % 30);
    std::ranges::fill(&costs[0][0], &costs[0][0] + 21, 5.0F);
    int channels = 0;
    const auto start = std::chrono::steady_clock::now();
    for (const std::size_t each : bytes)
      tuner.get_coll_info(context, static_cast<int>(each % 5), each, 1, reinterpret_cast<float**>(costs), 7, 3, 0,
                          &channels);
    sample = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 100;
  }
  std::ranges::sort(found);
  return found;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string file = count > 1 ? arguments[1] : "python/waywiser/nccl/libnccl-tuner-waywiser.so";
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  const auto* const tuner = static_cast<const Tuner*>(dlsym(library, "ncclTunerPlugin_v4"));
  const Plan plan = large_plan();
  const std::string kept = "/tmp/nccl_tuner_benchmark-" + std::to_string(getpid()) + ".json";
  std::ofstream(kept) << to_json(plan);
  setenv("WAYWISER_NCCL_PLAN", (plan_fingerprint(plan, "NCCL") + ":" + kept).c_str(), 1);
  void* context = nullptr;
  const bool begun = tuner != nullptr && tuner->init(8, 1, nullptr, &context) == 0;
  std::remove(kept.c_str());
  if (!begun) return 2;
  const std::vector<double> found = samples(*tuner, context);
  tuner->destroy(context);
  const double median = found[found.size() / 2], p99 = found[found.size() * 99 / 100];
  std::fprintf(stderr, "a look-up costs %.1f ns, p99 %.1f ns\n", median, p99);
  std::cout << Json{{"benchmark", "nccl_tuner"}, {"nanoseconds", median}, {"p99", p99}, {"limit", 200}}.dump() << '\n';
  return p99 <= 200 ? 0 : 1;
}
