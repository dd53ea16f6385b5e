// Which way messages in host memory take within a machine: the plan's or the defaults', and that all bytes arrive.
#include "waywiser/comm/message/host_message_sizes.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

struct SizedWay {
  Bytes from, to;
  const char* way;
};

std::shared_ptr<const Chooser> plan_of_messages(const std::vector<SizedWay>& ways) {
  Plan plan;
  for (const auto& [from, to, way] : ways) plan.rows.push_back(made_up::group_row("message", "host", 2, from, to, way));
  return std::make_shared<const Chooser>(std::move(plan));
}

HostMessageSizes sizes_of(const std::vector<SizedWay>& ways) {
  return host_message_sizes(plan_of_messages(ways).get(), 1000);
}

TEST(HostMessageSizes, WithoutAPlanTheyAreTheDefaults) {
  const HostMessageSizes sizes = host_message_sizes(nullptr, 1000);
  EXPECT_EQ(sizes.lane, defaults::lane_short);
  EXPECT_EQ(sizes.ucx, 1000u);
}

TEST(HostMessageSizes, ThePlanSaysWhereEachWayBegins) {
  testing::internal::CaptureStderr();
  const HostMessageSizes three = sizes_of({{0, 2000, "lane"}, {2001, 90000, "ucx"}, {90001, no_end, "copies"}});
  EXPECT_EQ(three.lane, 2000u);
  EXPECT_EQ(three.ucx, 90000u);
  const HostMessageSizes two = sizes_of({{0, 12000, "lane"}, {12001, no_end, "copies"}});
  EXPECT_EQ(two.lane, longest_short) << "it has no room for more";
  EXPECT_EQ(two.ucx, 0u);
  EXPECT_EQ(sizes_of({{0, no_end, "ucx"}}).ucx, no_end);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(HostMessageSizes, ARowThatIsPassedOverIsTold) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(sizes_of({{0, 100, "copies"}, {101, 2000, "lane"}, {2001, no_end, "copies"}}).lane, 0u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "waywiser: message of host arrays: lane, which the plan has from 101 on, does not run: a group takes lane, "
            "above it ucx, then copies\n");
  EXPECT_EQ(error_of([] { sizes_of({{0, no_end, "pigeon"}}); }), "plan: message of host arrays has no way 'pigeon'");
}

TEST(HostMessageSizes, OneWayCanBeAskedFor) {
  EXPECT_FALSE(only_host_way("ring", 8));
  EXPECT_EQ(only_host_way("lane", 8)->lane, longest_short);
  EXPECT_EQ(error_of([] { only_host_way("lane", longest_short + 1); }), "a lane has no room for more than 8K");
  EXPECT_EQ(only_host_way("copies", 8)->ucx, 0u);
  EXPECT_GT(only_host_way("ucx", 8)->ucx, no_end);
}

// Between far cores both ranks copy: by default, and with one line in spite of a plan. What is measured is UCX.
TEST(HostMessageSizes, APlanThatFarCoresDoNotFollowIsTold) {
  int asked = 0;
  const auto close = [&] { return ++asked > 0; };
  const auto far = [&] { return ++asked == 0; };
  HostMessageSizes usual = host_message_sizes(nullptr, 1000), planned = sizes_of({{0, 1000, "ucx"}}),
                   measured = *only_host_way("ucx", 8);
  testing::internal::CaptureStderr();
  EXPECT_TRUE(usual.is_by_ucx(1000, close));
  EXPECT_TRUE(planned.is_by_ucx(1000, close));
  EXPECT_FALSE(usual.is_by_ucx(1000, far));
  EXPECT_TRUE(measured.is_by_ucx(1000, far));
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(planned.is_by_ucx(1001, far));
  EXPECT_EQ(asked, 3) << "it does not matter";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(planned.is_by_ucx(1000, far));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "waywiser: message of host arrays: ucx, which the plan has, does not run: the cores of two ranks are far "
            "apart, so both copy\n");
}

// Both ways at once, blocking and begun, then a collective.
void exchange_all_sizes(Group& group) {
  const int other = 1 - group.rank();
  for (const std::size_t bytes : {0u, 1u, 8u, 100u, 8192u, 9000u, 70000u, 300001u}) {
    std::vector<std::uint8_t> give(bytes), take(bytes), wanted(bytes);
    std::iota(give.begin(), give.end(), static_cast<std::uint8_t>(group.rank()));
    std::iota(wanted.begin(), wanted.end(), static_cast<std::uint8_t>(other));
    group.sendrecv(std::span<const std::uint8_t>(give), other, std::span(take), other);
    require_that(take == wanted, "sendrecv of " + std::to_string(bytes));
    if (group.rank() == 0) group.send(std::span<const std::uint8_t>(give), other);
    if (group.rank() == 1) group.recv(std::span(take), other);
    require_that(take == wanted, "send of " + std::to_string(bytes));
    std::vector<std::uint8_t> most(bytes);
    group.all_reduce(std::span<const std::uint8_t>(give), std::span(most), ReduceOp::max);
    for (std::size_t i = 0; i < bytes; ++i)
      require_that(most[i] == std::max(give[i], wanted[i]), "all_reduce of " + std::to_string(bytes));
  }
}

TEST(HostMessageSizes, EveryWayOfAPlanCarriesAllSizes) {
  for (const char* way : {"lane", "ucx", "copies"}) {
    TestRanks ranks(2);
    ranks.chooser_of = [&](int) { return plan_of_messages({{0, no_end, way}}); };
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      const HostMessageSizes& sizes = session_of(group).engine().mailboxes().sizes();
      require_that((sizes.lane != 0) == (way == std::string("lane")), "the plan's way");
      require_that((sizes.ucx != 0) == (way == std::string("ucx")), "the plan's way");
      exchange_all_sizes(group);
    }),
              no_problems)
        << way;
  }
}

}  // namespace
}  // namespace waywiser
