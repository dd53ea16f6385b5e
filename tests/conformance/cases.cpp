#include "tests/conformance/cases.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace waywiser::conformance {
namespace {

using Parameters = std::map<std::string, std::string>;

Deadline soon() { return Deadline::in(20); }

struct Row {
  const char* pair;
  const char* mechanism;
  Parameters parameters;
};

const Parameters pipelined{{"variant", "pipelined"}, {"chunk", "4K"}, {"depth", "3"}};

std::vector<Row> gpu_rows() {
  return {
      {"host0>gpu0", "copy_engine", {}},
      {"host0>gpu0", "sm_copy", {{"direction", "pull"}, {"blocks", "2"}}},
      {"host0>gpu0", "host_staged", {{"variant", "pageable"}}},
      {"host0>gpu0", "host_staged", {{"variant", "whole"}}},
      {"host0>gpu0", "host_staged", pipelined},
      {"host0>gpu0", "courier", {}},
      {"host0>gpu0", "bar_copy", {}},
      {"gpu0>host0", "copy_engine", {}},
      {"gpu0>host0", "sm_copy", {{"direction", "push"}, {"blocks", "3"}}},
      {"gpu0>host0", "host_staged", {{"variant", "pageable"}}},
      {"gpu0>host0", "host_staged", {{"variant", "whole"}}},
      {"gpu0>host0", "host_staged", pipelined},
      {"gpu0>host0", "courier", {}},
      {"gpu0>host0", "bar_copy", {}},
      {"gpu0>gpu0", "copy_engine", {}},
      {"gpu0>gpu0", "sm_copy", {{"direction", "push"}, {"blocks", "4"}, {"threads", "64"}}},
      {"gpu0>gpu1", "copy_engine", {}},
      {"gpu0>gpu1", "sm_copy", {{"direction", "push"}, {"blocks", "1"}}},
      {"gpu0>gpu1", "sm_copy", {{"direction", "pull"}, {"blocks", "8"}, {"threads", "32"}}},
      {"gpu0>gpu1", "host_staged", {{"variant", "pageable"}}},
      {"gpu0>gpu1", "host_staged", {{"variant", "whole"}}},
      {"gpu0>gpu1", "host_staged", {{"variant", "pipelined"}, {"chunk", "8K"}, {"depth", "1"}}},
      {"gpu0>gpu1", "host_staged", pipelined},
      {"gpu0>gpu1", "relay", {{"via", "gpu2"}, {"chunk", "4K"}, {"depth", "2"}}},
      {"gpu0>gpu1",
       "split",
       {{"ways", "copy_engine+sm_copy"}, {"share", "30+70"}, {"2.direction", "pull"}, {"2.blocks", "2"}}},
      {"gpu0>gpu1",
       "split",
       {{"ways", "copy_engine+relay+host_staged"},
        {"share", "50+25+25"},
        {"2.via", "gpu2"},
        {"2.chunk", "16K"},
        {"2.depth", "2"},
        {"3.variant", "whole"}}},
      {"gpu0>gpu3", "host_staged", {{"variant", "whole"}}},
      {"gpu0>gpu3", "host_staged", pipelined},
  };
}

std::vector<Row> host_rows() {
  return {
      {"host0>host0", "host_copy", {{"stores", "temporal"}, {"threads", "1"}}},
      {"host0>host0", "host_copy", {{"stores", "temporal"}, {"threads", "3"}}},
      {"host0>host0", "host_copy", {{"stores", "nontemporal"}, {"threads", "1"}}},
      {"host0>host0", "host_copy", {{"stores", "nontemporal"}, {"threads", "2"}}},
  };
}

Path path_of(const Row& row) {
  const std::string pair = row.pair;
  const std::size_t middle = pair.find('>');
  return {row.mechanism, parse_place(pair.substr(0, middle)), parse_place(pair.substr(middle + 1)), 1, row.parameters};
}

// What this machine cannot do is left out; each mechanism's own tests look at its reasons.
void add(std::vector<Case>& cases, const std::string& backend, const std::vector<Row>& rows, std::uint64_t seed) {
  const std::unique_ptr<Platform> platform = open_platform({backend, {}, seed});
  for (const Row& row : rows) {
    const Path path = path_of(row);
    const bool resident_kernel = row.mechanism == std::string("courier");  // waits for the host
    if (seed != 0 && resident_kernel) continue;
    if (!why_unavailable(path, {*platform})) cases.push_back({backend, path, seed});
  }
}

}  // namespace

VirtualMachine four_gpus() {
  VirtualMachine machine;
  machine.gpus = 4;
  machine.memory = Bytes{16} << 30;
  machine.no_peer_access.assign(4, std::vector<std::string>(4));
  for (std::size_t gpu = 0; gpu < 3; ++gpu)
    machine.no_peer_access[gpu][3] = machine.no_peer_access[3][gpu] = "no peer access: different root complexes";
  return machine;
}

std::unique_ptr<Platform> open_platform(const Case& test) {
  if (test.backend == "host") return open_host_platform();
  if (test.backend == "cuda") return open_cuda_platform();
  VirtualMachine machine = four_gpus();
  machine.reorder_seed = test.reorder_seed;
  return open_virtual_platform(machine);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add(cases, "host", host_rows(), 0);
  for (const std::uint64_t seed : {0, 1, 2, 3}) add(cases, "virtual_gpu", gpu_rows(), seed);
  if (!why_no_cuda()) add(cases, "cuda", gpu_rows(), 0);
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Case& test = info.param;
  std::string name = test.backend + "_" + pair_text(test.path) + "_" + label(test.path);
  if (test.reorder_seed != 0) name += "_seed" + std::to_string(test.reorder_seed);
  std::ranges::replace_if(name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return std::to_string(info.index) + "_" + name;
}

Path reversed(const Path& path) {
  Path other = path;
  std::swap(other.source, other.destination);
  const bool one_gpu = path.source.is_gpu() != path.destination.is_gpu();
  if (one_gpu && other.has("direction"))
    other.parameters["direction"] = path.parameter("direction") == "push" ? "pull" : "push";
  return other;
}

Stream& Bytewise::stream(Place place) {
  auto& stream = streams_[place];
  if (!stream) stream = platform_.open_stream(place);
  return *stream;
}

void Bytewise::write(Region region, const std::vector<std::byte>& bytes) {
  if (bytes.empty()) return;
  const Memory pinned = platform_.allocate(host(0), bytes.size(), Allocation::pinned);
  std::memcpy(pinned.region().data, bytes.data(), bytes.size());
  stream(region.place).copy(region, pinned.region());
  stream(region.place).synchronize(soon());
}

std::vector<std::byte> Bytewise::read(ConstRegion region) {
  std::vector<std::byte> bytes(region.bytes);
  if (bytes.empty()) return bytes;
  const Memory pinned = platform_.allocate(host(0), bytes.size(), Allocation::pinned);
  stream(region.place).copy(pinned.region(), region);
  stream(region.place).synchronize(soon());
  std::memcpy(bytes.data(), pinned.region().data, bytes.size());
  return bytes;
}

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> result(bytes);
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (std::byte& each : result) {
    state = state * 1664525u + 1013904223u;
    each = static_cast<std::byte>(state >> 24);
  }
  return result;
}

}  // namespace waywiser::conformance
