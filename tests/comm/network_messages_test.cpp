// Messages of hosts that take each other for ranks of two machines follow the plan of the road between them. UCX takes
// the loopback device.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/network_rows.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/network/network_paths.hpp"

namespace waywiser {
namespace {

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(NetworkPaths, MessagesAndCollectivesOfHosts) {
  TestRanks ranks(3);
  ranks.machines_apart = true;
  ranks.chooser_of = [](int) { return plan_of_rows(host_rows()); };
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
  ranks.chooser_of = [](int) { return plan_of_rows(host_rows()); };
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
  ranks.chooser_of = [](int) { return plan_of_rows(host_rows()); };
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
    ranks.chooser_of = [](int) { return plan_of_rows(host_rows()); };
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

}  // namespace
}  // namespace waywiser
