#include "waywiser/policy/chooser.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/policy/made_up_links.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/measure/pair_class.hpp"

namespace waywiser {
namespace {

PlanRow row(Bytes from, Bytes to, const std::string& mechanism) {
  return made_up::message_row({made_up::made_up_path(mechanism)}, from, to, Operation::latency, {{gpu(1), gpu(0)}});
}

TEST(Chooser, AgreesWithALinearSearchForAnyRanges) {
  std::mt19937_64 random(5);
  for (int run = 0; run < 50; ++run) {
    Plan plan;
    Bytes from = 0;
    while (from < Bytes{1} << 40) {
      const Bytes to = from + (random() >> (10 + random() % 50));
      if (random() % 5 != 0) plan.rows.push_back(row(from, to, "a"));  // else a gap
      from = to + 1;
    }
    if (plan.rows.empty()) continue;
    const std::vector<PlanRow> rows = plan.rows;
    const Chooser chooser(std::move(plan));
    for (int i = 0; i < 500; ++i) {
      const Bytes bytes = i < 2 ? i : random() >> (random() % 64);
      const PlanRow* expected = nullptr;
      for (const PlanRow& entry : rows)
        if (entry.from_bytes <= bytes && bytes <= entry.to_bytes) expected = &entry;
      const PlanRow* found = chooser.choose(gpu(1), gpu(0), 1, Operation::latency, bytes);
      ASSERT_EQ(found == nullptr, expected == nullptr) << bytes;
      if (found != nullptr) {
        ASSERT_EQ(found->from_bytes, expected->from_bytes);
      }
    }
  }
}

TEST(Chooser, AnswersNothingForWhatThePlanDoesNotHave) {
  Plan plan;
  plan.rows = {row(0, 100, "a")};
  const Chooser chooser(plan);
  EXPECT_NE(chooser.choose(gpu(0), gpu(1), 1, Operation::latency, 100), nullptr);
  EXPECT_EQ(chooser.choose(gpu(0), gpu(1), 1, Operation::latency, 101), nullptr);
  EXPECT_EQ(chooser.choose(gpu(0), gpu(1), 2, Operation::latency, 1), nullptr);
  EXPECT_EQ(chooser.choose(gpu(0), gpu(1), 3, Operation::latency, 1), nullptr);
  EXPECT_EQ(chooser.choose(gpu(0), gpu(1), 1, Operation::streaming, 1), nullptr);
  EXPECT_EQ(chooser.choose(gpu(0), gpu(5), 1, Operation::latency, 1), nullptr);
  EXPECT_EQ(chooser.choose(host(0), gpu(1), 1, Operation::latency, 1), nullptr);
}

TEST(Chooser, TellsTypesOfNodesAndRailsApart) {
  const auto to_node = [](NodeType type, const std::string& rail, const std::string& mechanism) {
    PlanRow made = row(0, 100, mechanism);
    made.key.pairs = {{gpu(0), on_node(type, gpu(0))}};
    made.key.rail = rail;
    return made;
  };
  Plan plan;
  plan.rows = {to_node(10, "", "a"), to_node(10, "r0", "b"), to_node(11, "", "c"), to_node(11, "r1", "d")};
  const Chooser chooser(plan);
  const auto found = [&](NodeType type, std::string_view rail) {
    const PlanRow* chosen = chooser.choose(gpu(0), on_node(type, gpu(0)), 1, Operation::latency, 5, rail);
    return chosen == nullptr ? std::string() : chosen->way().name;
  };
  EXPECT_EQ(found(10, ""), "a");
  EXPECT_EQ(found(10, "r0"), "b");
  EXPECT_EQ(found(11, ""), "c");
  EXPECT_EQ(found(11, "r1"), "d");
  EXPECT_EQ(found(10, "r1"), "");
  EXPECT_EQ(found(12, ""), "");
  EXPECT_EQ(found(some_other_node, ""), "a");  // the first type, where none is said
}

TEST(Chooser, OverlappingRangesAreRefused) {
  Plan plan;
  plan.rows = {row(0, 100, "a"), row(100, 200, "b")};
  EXPECT_THROW(Chooser{plan}, Error);
}

TEST(PairClass, ARelayNeverGoesThroughItsOwnEnds) {
  const Path relay{"relay", gpu(0), gpu(1), 1, {{"via", "gpu2"}}};
  for (const auto& [source, destination] :
       std::vector<std::pair<int, int>>{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {0, 2}, {2, 0}, {2, 3}, {3, 2}}) {
    const Path path = for_pair(relay, gpu(source), gpu(destination));
    const Place via = parse_place(path.parameter("via"));
    EXPECT_NE(via, gpu(source));
    EXPECT_NE(via, gpu(destination));
  }
}

}  // namespace
}  // namespace waywiser
