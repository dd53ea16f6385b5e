#include "tests/conformance/cases.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "waywiser/base/error.hpp"

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
      {"gpu0>gpu1", "copy_engine", {{"direction", "pull"}}},
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

// A letter for each row: y where this machine can do it.
std::string possible(const std::string& backend, const std::vector<Row>& rows, std::uint64_t seed) {
  const std::unique_ptr<Platform> platform = open_platform({backend, {}, seed});
  std::string letters;
  for (const Row& row : rows) letters += why_unavailable(path_of(row), {*platform}) ? 'n' : 'y';
  return letters;
}

// In a process of its own: CUDA does not survive a fork, and the tests of groups fork their ranks.
std::string possible_on_cuda(const std::vector<Row>& rows) {
  int ends[2];
  if (::pipe(ends) != 0) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string letters = why_no_cuda() ? "" : possible("cuda", rows, 0);
    const bool told = ::write(ends[1], letters.data(), letters.size()) == static_cast<ssize_t>(letters.size());
    ::_exit(told ? 0 : 1);
  }
  ::close(ends[1]);
  std::string letters(rows.size(), 'n');
  const ssize_t count = ::read(ends[0], letters.data(), letters.size());
  ::close(ends[0]);
  int status = 1;
  if (::waitpid(child, &status, 0) != child || status != 0)
    throw Error(ErrorKind::device,
                "the process that looks at the CUDA devices has ended with " + std::to_string(status));
  return letters.substr(0, count > 0 ? static_cast<std::size_t>(count) : 0);
}

// Mechanisms that this machine does not have are left out; their own tests check the reasons.
void add(std::vector<Case>& cases, const std::string& backend, const std::vector<Row>& rows, std::uint64_t seed) {
  const std::string letters = backend == "cuda" ? possible_on_cuda(rows) : possible(backend, rows, seed);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const bool resident_kernel = rows[i].mechanism == std::string("courier");  // waits for the host
    if (letters[i] == 'y' && (seed == 0 || !resident_kernel)) cases.push_back({backend, path_of(rows[i]), seed});
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
  add(cases, "cuda", gpu_rows(), 0);
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
