// Groups whose ranks take each other for ranks of two machines: messages follow a plan of the road between them. UCX
// takes the loopback device.
#include "waywiser/comm/network/network_paths.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

using Parameters = std::map<std::string, std::string>;

constexpr Seconds most_wait = 20;

Path network_path(const std::string& mechanism, Place source, Place destination, Parameters parameters) {
  parameters.insert({{"transports", "network-tcp"}, {"device", "lo"}});
  return {mechanism, source, seen_from_other(destination), 2, std::move(parameters)};
}

PlanRow row_of(const Path& path, Bytes from, Bytes to) { return made_up::message_row({path}, from, to); }

std::shared_ptr<const Chooser> plan_of(std::vector<PlanRow> rows) {
  Plan plan;
  plan.rows = std::move(rows);
  return std::make_shared<const Chooser>(std::move(plan));
}

// Long messages between hosts, by two rails.
std::vector<PlanRow> host_rows() {
  const Path one = network_path("ucx", host(0), host(0), {});
  const Path two = network_path("ucx", host(0), host(0), {{"device", "lo+lo"}, {"share", "75+25"}});
  return {row_of(one, 0, 99999), row_of(two, 100000, no_end)};
}

std::vector<PlanRow> with_gpu_row(const std::string& mechanism, const Parameters& parameters) {
  std::vector<PlanRow> rows = host_rows();
  rows.push_back(row_of(network_path(mechanism, gpu(0), gpu(0), parameters), 0, no_end));
  return rows;
}

TEST(NetworkPaths, BothEndsOfBothDirectionsNameTheirOwnDevice) {
  const Path path =
      network_path("ucx", gpu(0), host(0), {{"device", "a/b+c/d"}, {"share", "75+25"}, {"gdrcopy", "off"}});
  const NetworkPaths ways(plan_of({row_of(path, 0, no_end)}));
  ASSERT_EQ(ways.all().size(), 1u);
  const NetworkPath& way = ways.all().front();
  EXPECT_EQ(way.percents, (std::vector<int>{75, 25}));
  EXPECT_TRUE(way.reads_gpus());
  const auto devices = [&](bool sends, bool turned) {
    std::string text;
    for (const UcxSelection& selection : way.selections(sends, turned))
      text += selection.devices + ":" + selection.transports + " ";
    return text;
  };
  EXPECT_EQ(devices(true, false), "a:tcp,cuda_copy c:tcp,cuda_copy ");
  EXPECT_EQ(devices(false, false), "b:tcp d:tcp ");
  EXPECT_EQ(devices(true, true), "b:tcp,cuda_copy d:tcp,cuda_copy ");
  EXPECT_EQ(devices(false, true), "a:tcp c:tcp ");
}

TEST(NetworkPaths, AreFoundByKindOfMemoryAndSize) {
  const NetworkPaths ways(plan_of(with_gpu_row("ucx_staged", {{"variant", "whole"}})));
  const auto found = [&](Place source, Place destination, Bytes bytes) {
    return ways.find(source, destination, bytes, ways.ends(some_other_node, some_other_node, true), true);
  };
  EXPECT_EQ(found(host(1), host(0), 10), 0u);
  EXPECT_EQ(found(host(1), host(0), 1 << 20), 1u);
  EXPECT_EQ(found(gpu(5), gpu(3), 1 << 20), 2u);
  EXPECT_EQ(found(gpu(5), host(0), 1 << 20), std::nullopt);
  EXPECT_EQ(NetworkPaths({}).find(host(0), host(0), 10, {}, true), std::nullopt);
}

// Node types: the plan was made on the first.
constexpr const char* first_node = "000000000000000a";
constexpr const char* second_node = "000000000000000b";
constexpr const char* third_node = "000000000000000c";
constexpr const char* unknown_node = "000000000000000d";

PlanRow row_to(const std::string& node, Place here, Place there, const Parameters& parameters) {
  Path path = network_path("ucx_staged", here, there, parameters);
  path.destination = on_node(node_type(node), there);
  return row_of(path, 0, no_end);
}

Parameters chunks_of(const std::string& chunk) { return {{"variant", "pipelined"}, {"chunk", chunk}, {"depth", "2"}}; }

// Rows to the second type come before those to the first: the choice must not depend on the order.
std::shared_ptr<const Chooser> plan_of_types() {
  Plan plan;
  plan.fingerprint = first_node;
  plan.rows = {
      row_to(second_node, gpu(0), gpu(0), chunks_of("64K")), row_to(second_node, gpu(1), gpu(0), chunks_of("32K")),
      row_to(second_node, gpu(0), gpu(1), chunks_of("16K")), row_to(third_node, gpu(0), gpu(0), chunks_of("8K")),
      row_to(first_node, gpu(0), gpu(0), {{"variant", "pageable"}})};
  return std::make_shared<const Chooser>(std::move(plan));
}

TEST(NetworkPaths, EndsAreThoseOfTheTypesOfNodes) {
  const NetworkPaths ways(plan_of_types());
  EXPECT_TRUE(ways.tells_nodes_apart());
  const auto ends = [&](const char* mine, const char* theirs, bool lower) {
    const PlanEnds found = ways.ends(node_type(mine), node_type(theirs), lower);
    return text_of_node(found.there) + (found.here ? " from here" : " to here");
  };
  for (const bool lower : {false, true}) {
    EXPECT_EQ(ends(first_node, second_node, lower), std::string(second_node) + " from here");
    EXPECT_EQ(ends(second_node, first_node, lower), std::string(second_node) + " to here");
    EXPECT_EQ(ends(third_node, first_node, lower), std::string(third_node) + " to here");
    EXPECT_EQ(ends(first_node, unknown_node, lower), std::string(first_node) + " from here");
    EXPECT_EQ(ends(unknown_node, first_node, lower), std::string(first_node) + " to here");
  }
  EXPECT_EQ(ends(first_node, first_node, true), std::string(first_node) + " from here");
  EXPECT_EQ(ends(first_node, first_node, false), std::string(first_node) + " to here");
  EXPECT_EQ(ends(second_node, third_node, true), std::string(third_node) + " from here");
  EXPECT_EQ(ends(third_node, second_node, false), std::string(third_node) + " to here");
  EXPECT_EQ(ends("", "", true), std::string(second_node) + " from here");
}

TEST(NetworkPaths, APlanOfOneTypeAsksNobodyForHis) {
  Plan plan;
  plan.fingerprint = first_node;
  plan.rows = {row_to(first_node, gpu(0), gpu(0), {{"variant", "whole"}})};
  EXPECT_FALSE(NetworkPaths(std::make_shared<const Chooser>(std::move(plan))).tells_nodes_apart());
  EXPECT_FALSE(NetworkPaths(plan_of(with_gpu_row("ucx_staged", {{"variant", "whole"}}))).tells_nodes_apart());
}

// The road belongs to the two GPUs, whichever of them sends.
TEST(NetworkPaths, AreFoundByTheGpusOfBothEnds) {
  const NetworkPaths ways(plan_of_types());
  const NodeType first = node_type(first_node), second = node_type(second_node);
  const auto chunk = [&](Place source, Place destination, bool from_first) {
    const PlanEnds sender = from_first ? ways.ends(first, second, true) : ways.ends(second, first, true);
    const PlanEnds receiver = from_first ? ways.ends(second, first, false) : ways.ends(first, second, false);
    const auto found = ways.find(source, destination, 1 << 20, sender, true);
    EXPECT_EQ(ways.find(source, destination, 1 << 20, receiver, false), found);
    return found ? std::string(ways.all()[*found].path.parameter("chunk")) : "none";
  };
  EXPECT_EQ(chunk(gpu(0), gpu(0), true), "64K");
  EXPECT_EQ(chunk(gpu(1), gpu(0), true), "32K");
  EXPECT_EQ(chunk(gpu(0), gpu(1), true), "16K");
  EXPECT_EQ(chunk(gpu(1), gpu(1), true), "32K");
  EXPECT_EQ(chunk(gpu(7), gpu(7), true), "64K");
  EXPECT_EQ(chunk(gpu(1), gpu(0), false), "16K");
  EXPECT_EQ(chunk(gpu(0), gpu(1), false), "32K");
  EXPECT_EQ(chunk(gpu(0), host(0), true), "none");
}

TEST(NetworkPaths, OneRoadBetweenHostsIsWhatUcxTakesByItself) {
  EXPECT_TRUE(NetworkPaths(plan_of({host_rows().front()})).all().empty());
}

TEST(NetworkPaths, ASharePerRailIsNeeded) {
  std::vector<PlanRow> rows = host_rows();
  rows[1].ways.front().way.parameters["share"] = "75+20";
  EXPECT_THROW(NetworkPaths{plan_of(rows)}, Error);
}

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(NetworkPaths, MessagesAndCollectivesOfHosts) {
  TestRanks ranks(3);
  ranks.machines_apart = true;
  ranks.chooser_of = [](int) { return plan_of(host_rows()); };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const int next = (group.rank() + 1) % 3, before = (group.rank() + 2) % 3;
    for (const std::size_t count : {10u, 20000u, 25000u, 300001u, 25001u}) {
      const std::vector<int> mine = numbers(count, group.rank());
      std::vector<int> theirs(count);
      for (int round = 0; round < 3; ++round) {
        group.sendrecv(std::span(mine), next, std::span(theirs), before);
        require_that(theirs == numbers(count, before), "what the rank before sent");
      }
      std::vector<int> sum(count);
      group.all_reduce(std::span(mine), std::span(sum));
      require_that(sum[count - 1] == 3 * static_cast<int>(count - 1) + 3, "the sum");
    }
  }),
            no_problems);
}

// The header says the length to a receive of any rank; a probe cannot know it.
TEST(NetworkPaths, AReceiveOfAnyRankTakesMessagesByRails) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.chooser_of = [](int) { return plan_of(host_rows()); };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const std::size_t count : {25000u, 300001u, 10u}) {
      for (int round = 0; round < 4; ++round) {
        const std::vector<int> sent = numbers(count, round);
        if (group.rank() == 1) {
          group.send(std::span(sent), 0, round);
          continue;
        }
        std::vector<int> taken(400000);
        MessageStatus status;
        if (round == 0)
          group.recv(std::span(taken).first(count), any_source, any_tag);
        else
          group.recv(std::span(taken), round == 1 ? 1 : any_source, any_tag, Mode::wait, &status);
        taken.resize(count);
        require_that(taken == sent, "what rank 1 sent");
        require_that(round == 0 || (status.source == 1 && status.tag == round && status.count == count), "the status");
      }
      group.barrier();
    }
    if (environment("UCX_TLS")) return;  // then there are no rails
    const std::vector<int> last = numbers(300000, 7);
    if (group.rank() == 1) {
      group.send(std::span(last), 0);
      return;
    }
    std::string said = "no error";
    try {
      static_cast<void>(group.probe());
    } catch (const Error& error) {
      said = error.what();
    }
    require_that(said.find("rank 1 sends by several network cards, whose length") != std::string::npos, said);
    std::vector<int> taken(300000);
    group.recv(std::span(taken), 1);
    require_that(taken == last, "what a probe has only looked at");
  }),
            no_problems);
}

TEST(NetworkPaths, AMessageByRailsThatIsTooLongForAnyRanksIsNamed) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.chooser_of = [](int) { return plan_of(host_rows()); };
  const auto problems = ranks.in_processes([](Group& group) {
    std::vector<std::byte> bytes(group.rank() == 0 ? 300000 : 200000);
    MessageStatus status;
    if (group.rank() == 0) group.send(std::span<const std::byte>(bytes), 1);
    if (group.rank() == 1) group.recv(std::span(bytes), any_source, any_tag, Mode::wait, &status);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[1].find("rank 0 sent 300000 bytes where 200000 were expected"), std::string::npos) << problems[1];
}

TEST(NetworkPaths, AMessageOfAnotherLengthIsNamed) {
  for (const auto& [sent, expected] : std::vector<std::pair<std::size_t, std::size_t>>{
           {300000, 200000}, {300000, 100}, {100, 300000}, {90000, 300000}, {300000, 90000}}) {
    TestRanks ranks(2);
    ranks.machines_apart = true;
    ranks.chooser_of = [](int) { return plan_of(host_rows()); };
    const auto problems = ranks.in_processes([sent = sent, expected = expected](Group& group) {
      std::vector<std::byte> bytes(group.rank() == 0 ? sent : expected);
      if (group.rank() == 0) group.send(std::span<const std::byte>(bytes), 1);
      if (group.rank() == 1) group.recv(std::span(bytes), 0);
      group.barrier();
    });
    ASSERT_EQ(problems.size(), 2u);
    const std::string all = problems[0] + problems[1];
    EXPECT_NE(all.find("where " + std::to_string(expected) + " "), std::string::npos) << all;
    EXPECT_NE(all.find("were expected"), std::string::npos) << all;
    const bool both_by_rails = sent >= 100000 && expected >= 100000;
    EXPECT_TRUE(!both_by_rails || all.find("sent 300000 bytes") != std::string::npos) << all;
  }
}

// Pages of a GPU with a pattern, written and read through the host.
class PatternOnGpu {
 public:
  PatternOnGpu(Platform& platform, Bytes bytes, int index = 0)
      : memory_(platform.allocate(gpu(index), bytes, Allocation::gpu)),
        host_(platform.allocate(host(0), bytes, Allocation::pinned)),
        stream_(platform.open_stream(gpu(index))) {}

  void fill(int first) {
    for (Bytes i = 0; i < host_.region().bytes; ++i) host_.region().data[i] = expected(first, i);
    copy(memory_.region(), host_.region());
  }
  bool holds(int first) {
    copy(host_.region(), memory_.region());
    for (Bytes i = 0; i < host_.region().bytes; ++i)
      if (host_.region().data[i] != expected(first, i)) return false;
    return true;
  }
  static std::byte expected(int first, Bytes i) {
    return static_cast<std::byte>(first + static_cast<int>(i * 7 % 251));
  }
  Elements elements() const { return {memory_.region(), DataType::uint8}; }

 private:
  void copy(Region destination, ConstRegion source) {
    stream_->copy(destination, source);
    stream_->synchronize(Deadline::in(most_wait));
  }
  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
};

// From GPU to GPU, to a host and from one.
void exchange_of_gpus(Group& group, const std::string& expected_way) {
  const int other = 1 - group.rank();
  for (const Bytes bytes : {Bytes{10000}, Bytes{300001}, Bytes{3} << 20}) {
    PatternOnGpu mine(*group.platform(), bytes), theirs(*group.platform(), bytes);
    mine.fill(group.rank());
    for (int round = 0; round < 2; ++round) {
      theirs.fill(9);
      group.sendrecv(mine.elements(), other, theirs.elements(), other);
      require_that(theirs.holds(other), "what the other GPU sent");
      const std::string why = group.why_staged(other);
      require_that(why.find(expected_way) != std::string::npos, expected_way + " in: " + why);
    }
    std::vector<std::byte> on_host(bytes);
    Future taking = group.recv(std::span(on_host), other, 5, Mode::begin);
    group.send(mine.elements(), other, 5);
    taking.wait();
    require_that(on_host.back() == PatternOnGpu::expected(other, bytes - 1), "what came to the host");
    Future arriving = group.recv(theirs.elements(), other, 6, Mode::begin);
    group.send(std::span<const std::byte>(on_host), other, 6);
    arriving.wait();
    require_that(theirs.holds(group.rank()), "what came back from the host");
  }
}

struct GpuRow {
  std::string name, mechanism;
  Parameters parameters;
  std::string expected_way;
};

std::vector<GpuRow> staged_rows() {
  return {{"pageable", "ucx_staged", {{"variant", "pageable"}}, "variant=pageable"},
          {"whole", "ucx_staged", {{"variant", "whole"}}, "variant=whole"},
          {"pipelined",
           "ucx_staged",
           {{"variant", "pipelined"}, {"chunk", "64K"}, {"depth", "2"}},
           "ucx_staged(chunk=64K,depth=2"}};
}

std::vector<GpuRow> all_rows() {
  std::vector<GpuRow> rows = staged_rows();
  rows.push_back({"read_by_ucx", "ucx", {{"gdrcopy", "off"}}, "machines, ucx("});
  return rows;
}

class StagedNetworkPaths : public testing::TestWithParam<GpuRow> {};
class AllNetworkPaths : public testing::TestWithParam<GpuRow> {};

TEST_P(StagedNetworkPaths, OfVirtualGpus) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  const GpuRow& row = GetParam();
  ranks.chooser_of = [&](int) { return plan_of(with_gpu_row(row.mechanism, row.parameters)); };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_of_gpus(group, row.expected_way); }), no_problems);
}

TEST_P(AllNetworkPaths, TwoProcessesOnCudaGpus) {
  if (cuda_devices_here() == 0) GTEST_SKIP() << "needs a CUDA GPU";
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.cuda_gpus = true;
  const GpuRow& row = GetParam();
  ranks.chooser_of = [&](int) { return plan_of(with_gpu_row(row.mechanism, row.parameters)); };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_of_gpus(group, row.expected_way); }), no_problems);
}

INSTANTIATE_TEST_SUITE_P(Rows, StagedNetworkPaths, testing::ValuesIn(staged_rows()),
                         [](const testing::TestParamInfo<GpuRow>& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Rows, AllNetworkPaths, testing::ValuesIn(all_rows()),
                         [](const testing::TestParamInfo<GpuRow>& row) { return row.param.name; });

// From a GPU of each rank to a GPU of every other rank. `says(sender, receiver)`: the description of the way at both.
template <typename Says>
void exchange_with_all(Group& group, int from, int to, Says says) {
  const Bytes bytes = 200001;
  for (int sender = 0; sender < group.size(); ++sender)
    for (int receiver = 0; receiver < group.size(); ++receiver) {
      if (sender == receiver || (group.rank() != sender && group.rank() != receiver)) continue;
      const bool sends = group.rank() == sender;
      PatternOnGpu data(*group.platform(), bytes, sends ? from : to);
      data.fill(sends ? sender : 99);
      sends ? group.send(data.elements(), receiver) : group.recv(data.elements(), sender);
      require_that(data.holds(sender), "what the other GPU sent");
      const std::string why = group.why_staged(sends ? receiver : sender), expected = says(sender, receiver);
      require_that(why.find(expected) != std::string::npos, expected + " in: " + why);
    }
}

TEST(NetworkPaths, EachPeerGetsTheRoadToItsTypeOfNode) {
  const std::vector<std::string> nodes{third_node, first_node, second_node, first_node};
  TestRanks ranks(4);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  ranks.chooser_of = [](int) { return plan_of_types(); };
  ranks.node_of = [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; };
  const auto says = [](int sender, int receiver) -> std::string {
    if (sender == 2 || receiver == 2) return "chunk=64K";  // the pair of 0 and 2, too: 2 is the higher rank
    return sender == 0 || receiver == 0 ? "chunk=8K" : "variant=pageable";
  };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_with_all(group, 0, 0, says); }), no_problems);
}

TEST(NetworkPaths, EachGpuGetsItsOwnRoad) {
  const std::vector<std::string> nodes{first_node, second_node};
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 2;
  ranks.chooser_of = [](int) { return plan_of_types(); };
  ranks.node_of = [&](int rank) { return nodes[static_cast<std::size_t>(rank)]; };
  // From GPU 1 to GPU 0: of those two pairs the plan has both.
  const auto says = [](int sender, int) -> std::string { return sender == 0 ? "chunk=32K" : "chunk=16K"; };
  EXPECT_EQ(ranks.in_processes([&](Group& group) { exchange_with_all(group, 1, 0, says); }), no_problems);
}

TEST(NetworkPaths, WhatUcxCannotReachIsStaged) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  ranks.chooser_of = [](int) { return plan_of(with_gpu_row("ucx", {{"gdrcopy", "off"}})); };
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_of_gpus(group, "two machines, and not ucx("); }),
            no_problems);
}

TEST(NetworkPaths, RailsThatAMachineLacksAreNotUsed) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  ranks.virtual_gpus = 1;
  ranks.chooser_of = [](int) {
    return plan_of(with_gpu_row("ucx_staged", {{"variant", "whole"}, {"device", "no-such-card"}}));
  };
  EXPECT_EQ(ranks.in_processes([](Group& group) { exchange_of_gpus(group, "and not ucx_staged("); }), no_problems);
}

}  // namespace
}  // namespace waywiser
