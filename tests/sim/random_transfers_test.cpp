#include <gtest/gtest.h>

#include "tests/sim/random_machines.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/measure/rotation.hpp"
#include "waywiser/path/enumerate.hpp"
#include "waywiser/sim/simulated_meter.hpp"
#include "waywiser/sim/timing.hpp"

// Every transfer on every machine is no faster than the hops that leave its source and come to its target,
// the same in both directions where the machine is the same, more bytes take no less time.
namespace waywiser::sim {
namespace {

constexpr double unit_roundings = 1e-9;

struct TimedMachine {
  explicit TimedMachine(Topology made) : topology(std::move(made)), node(topology, costs_of(topology)) {}

  // Nothing where the path is not available.
  std::optional<Seconds> time(const Path& path, Operation operation, Bytes bytes, int to_node = 0) const {
    ClusterSpec cluster;
    cluster.network.nodes = to_node + 1;
    try {
      return simulate(node, cluster,
                      {path,
                       {0, waywiser::text(path.source)},
                       {to_node, waywiser::text(path.destination)},
                       operation,
                       bytes,
                       {}})
          .seconds;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      return std::nullopt;
    }
  }
  // The limit of a host's memory, or of the hops that leave a GPU or lead to it.
  double most(Place place, bool out) const {
    const std::string id = waywiser::text(place);
    double all = 0;
    for (std::size_t i = 0; i < node.names().size(); ++i) {
      const std::string& hop = node.names()[i];
      const bool of_host = hop.starts_with(id + "-") || hop.ends_with("-" + id);
      if (of_host || (out ? hop.starts_with(id + ">") : hop.ends_with(">" + id))) all += node.capacities()[i];
    }
    return all;
  }
  Topology topology;
  NodeModel node;
};

std::vector<Path> paths_of(const Topology& topology) {
  std::vector<Path> found;
  for (const Subject& subject : simulated_subjects(topology, {}))
    for (const Family& family : subject.families) {
      const std::vector<Path> all = expand(family);
      found.push_back(all.front());
      if (all.size() > 1) found.push_back(all.back());
    }
  return found;
}

// Copies that caches hold are not bound by a memory.
bool in_caches(const TimedMachine& machine, const Path& path, Bytes bytes) {
  const auto caches = machine.node.caches("host0").second * machine.node.cores();
  return path.mechanism == "host_copy" && 2 * static_cast<double>(bytes) < caches;
}

TEST(RandomTransfers, NoneBeatsTheHopsOfItsEnds) {
  int timed = 0;
  for (unsigned seed = 1; seed <= random_cases(10); ++seed) {
    RandomMachine chance(seed);
    const TimedMachine machine(chance.topology);
    for (const Path& path : paths_of(machine.topology)) {
      if (path.source == path.destination) continue;
      const Bytes bytes = Bytes{1} << chance.between(0, 28);
      const auto seconds = machine.time(path, Operation::latency, bytes);
      if (!seconds || in_caches(machine, path, bytes)) continue;
      const double most = std::min(machine.most(path.source, true), machine.most(path.destination, false));
      ASSERT_GE(*seconds * (1 + unit_roundings), static_cast<double>(bytes) / most)
          << machine.topology.name << " " << pair_text(path) << " " << label(path) << " " << bytes;
      ++timed;
    }
  }
  EXPECT_GT(timed, 200);
}

TEST(RandomTransfers, MoreBytesTakeNoLessTime) {
  for (unsigned seed = 1; seed <= random_cases(3); ++seed) {
    const TimedMachine machine(RandomMachine(seed).topology);
    for (const Path& path : paths_of(machine.topology)) {
      Seconds before = 0;
      for (Bytes bytes = 1; bytes <= Bytes{1} << 27; bytes = bytes * 5 + 3) {
        const auto seconds = machine.time(path, Operation::latency, bytes);
        if (!seconds) break;
        ASSERT_GE(*seconds, before * (1 - unit_roundings))
            << machine.topology.name << " " << pair_text(path) << " " << label(path) << " " << bytes;
        before = *seconds;
      }
    }
  }
}

// Every link of these machines is the same in both directions.
TEST(RandomTransfers, GpusReachEachOtherAlike) {
  for (unsigned seed = 1; seed <= random_cases(40); ++seed) {
    RandomMachine chance(seed);
    const TimedMachine machine(chance.topology);
    const int gpus = static_cast<int>(machine.topology.ids("gpu").size());
    const int a = chance.between(0, gpus - 1), b = chance.between(0, gpus - 1);
    for (const char* mechanism : {"copy_engine", "ucx"}) {
      const bool remote = std::string(mechanism) == "ucx";
      Path there{mechanism, gpu(a), gpu(b), 1, {}};
      if (remote) there.parameters = {{"transports", "ib"}, {"gdr", "off"}, {"gdrcopy", "off"}};
      Path back = there;
      std::swap(back.source, back.destination);
      for (const Bytes bytes : {Bytes{8}, Bytes{1} << 16, Bytes{1} << 26}) {
        const auto one = machine.time(there, Operation::latency, bytes, remote ? 1 : 0);
        const auto other = machine.time(back, Operation::latency, bytes, remote ? 1 : 0);
        ASSERT_EQ(one.has_value(), other.has_value());
        if (!one || (remote && a != b)) continue;
        ASSERT_NEAR(*one, *other, unit_roundings * *one) << machine.topology.name << " " << pair_text(there);
      }
    }
  }
}

// Where the second caches of all cores do not hold source and target, a copy is not faster than its memory, which it
// reads and writes.
void check_host_copies(const TimedMachine& machine, const std::vector<Bytes>& sizes) {
  for (const std::string& host : machine.topology.ids("host")) {
    for (const char* stores : {"temporal", "nontemporal"})
      for (const char* threads : {"1", "7", "64", "256"})
        for (const Operation operation : {Operation::latency, Operation::streaming, Operation::bidirectional})
          for (const Bytes bytes : sizes) {
            const Place place = parse_place(host);
            const Path path{"host_copy", place, place, 1, {{"stores", stores}, {"threads", threads}}};
            const Seconds seconds = *machine.time(path, operation, bytes);
            if (in_caches(machine, path, bytes)) continue;
            ASSERT_LE(static_cast<double>(bytes) / seconds, machine.most(place, true))
                << machine.topology.name << " " << label(path) << " " << bytes;
          }
  }
}

TEST(RandomTransfers, NoHostCopyIsFasterThanItsMemory) {
  for (unsigned seed = 1; seed <= random_cases(3); ++seed)
    check_host_copies(TimedMachine(RandomMachine(seed).topology), {Bytes{1} << 20, Bytes{1} << 26, Bytes{1} << 30});
}

TEST(HostCopies, AreNotFasterThanTheMemoryOfAnyMachine) {
  for (const std::string& name : package_machines) {
    const TimedMachine machine(package_machine(name));
    check_host_copies(machine, {Bytes{1} << 26, Bytes{1} << 28, Bytes{1} << 30});
  }
}

TEST(HostCopies, BeyondTheCachesLargeOnesAreNotFasterThanSmallOnes) {
  for (const std::string& name : package_machines) {
    const TimedMachine machine(package_machine(name));
    for (const char* threads : {"1", "16", "64", "256"}) {
      const Path path{"host_copy", host(0), host(0), 1, {{"stores", "temporal"}, {"threads", threads}}};
      const auto rate = [&](Bytes bytes) {
        return static_cast<double>(bytes) / *machine.time(path, Operation::latency, bytes);
      };
      if (!in_caches(machine, path, Bytes{1} << 25)) {
        EXPECT_LE(rate(Bytes{1} << 26), rate(Bytes{1} << 20)) << name << " " << label(path);
      }
    }
  }
}

TEST(HostCopies, FollowTheCachesOfTheMachine) {
  Topology small = package_machine("hse-e"), large = small;
  for (Device& device : large.devices)
    if (device.kind == "cpu") device.attributes["l2_bytes"] = "16777216";
  const Path path{"host_copy", host(0), host(0), 1, {{"stores", "temporal"}, {"threads", "1"}}};
  const auto time = [&](const Topology& topology) {
    return *TimedMachine(topology).time(path, Operation::latency, 4 << 20);
  };
  EXPECT_LT(2 * time(large), time(small));
  for (Device& device : small.devices)
    if (device.kind == "cpu") device.attributes.clear();
  EXPECT_GT(time(small), time(large));
}

TEST(HostCopies, AMemoryOfUnknownRateIsNotEndless) {
  const TimedMachine machine(package_machine("recorded-4xh200"));
  const Path path{"host_copy", host(0), host(0), 1, {{"stores", "nontemporal"}, {"threads", "64"}}};
  EXPECT_LE((Bytes{1} << 30) / *machine.time(path, Operation::streaming, Bytes{1} << 30), 2.1e11 / 2);
}

}  // namespace
}  // namespace waywiser::sim
