#include <gtest/gtest.h>

#include <algorithm>

#include "tests/measure/made_up_meter.hpp"
#include "waywiser/path/network_families.hpp"
#include "waywiser/policy/choose.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser::made_up {
namespace {

struct Row {
  double first, second;  // GB/s
  std::string share;
};

NetworkSide two_cards() {
  return {"a", "1", 0, {{"mlx5_0:1", true, {"10.0.0.0/24"}}, {"mlx5_1:1", true, {"10.0.1.0/24"}}}};
}

// Each rail with its part of the bytes; the message is there when the slower one is done.
Behaviour over_rails(const Path& path, const Row& row) {
  const std::vector<int> percents = path.has("share") ? split_percents(path, 2) : std::vector<int>{};
  const bool second_alone = percents.empty() && path.has("device") && path.parameter("device") == "mlx5_1:1";
  const double first = percents.empty() ? (second_alone ? 0 : 1) : percents[0] / 100.0;
  return {[=](double bytes) {
            return 2e-6 + std::max(first * bytes / (row.first * 1e9), (1 - first) * bytes / (row.second * 1e9));
          },
          INFINITY, INFINITY, 0, path.has("share") ? Bytes{64 << 10} : 0};
}

std::string share_of_large_messages(const Row& row) {
  const Place there = seen_from_other(host(0));
  const Subject subject{{"host>other:host", {{host(0), there}}, 2},
                        network_families(two_cards(), two_cards(), host(0), there)};
  MadeUpMeter meter(0.01);
  for (const Family& family : subject.families)
    for (const Path& path : expand(family)) {
      meter.links[label(path)] = over_rails(path, row);
      if (path.parameter("transports") != "rc") meter.missing.insert(label(path));
    }
  CampaignOptions options;
  options.budget_seconds = 60;
  options.max_bytes = 64 << 20;
  const Plan plan = choose(run_campaign({subject}, meter, options, nullptr, {}), {"ucx"}, {});
  const auto largest = std::ranges::max_element(plan.rows, {}, [](const PlanRow& entry) {
    return entry.key.operation == "streaming" ? entry.from_bytes + 1 : 0;
  });
  const Path path = largest->path();
  return path.has("share") ? std::string(path.parameter("share")) : "one rail";
}

TEST(Rails, TheShareFollowsWhatEachRailCarries) {
  for (const Row& row : {Row{24, 24, "50+50"}, Row{18, 24, "40+60"}, Row{24, 8, "75+25"}, Row{6, 50, "10+90"}})
    EXPECT_EQ(share_of_large_messages(row), row.share) << row.first << " and " << row.second << " GB/s";
}

}  // namespace
}  // namespace waywiser::made_up
