// Receives from any rank and of any tag, on every way that messages take.
#include <gtest/gtest.h>

#include <random>

#include "tests/base/random_cases.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "tests/group/message_model.hpp"
#include "waywiser/comm/network/encryption.hpp"

namespace waywiser {
namespace {

// The ways of messages: lanes and copies, UCX, UCX between machines, TLS; two machines of two ranks mix them.
struct Route {
  std::string name;
  const char* mailbox = "";
  bool apart = false, encrypted = false;
  int ranks_of_machine = 1;
};

class WildcardsTest : public testing::TestWithParam<Route> {
 protected:
  void SetUp() override {
    if (GetParam().encrypted && !ssl_library().usable()) GTEST_SKIP() << ssl_library().why_not();
  }
  struct Ranks : TestRanks {
    Ranks(int size, const Route& way) : TestRanks(size) {
      machines_apart = way.apart;
      ranks_of_machine = way.ranks_of_machine;
      if (way.encrypted) secret = "known to the ranks of this test";
    }
  };
  static Ranks ranks(int size) { return {size, GetParam()}; }
  WithVariable mailbox_{"WAYWISER_MAILBOX", GetParam().mailbox};
  WithVariable encrypt_{"WAYWISER_ENCRYPT", GetParam().encrypted ? "1" : "0"};
};

INSTANTIATE_TEST_SUITE_P(Ways, WildcardsTest,
                         testing::Values(Route{"shared_memory"}, Route{"short_in_lanes", "short"}, Route{"ucx", "off"},
                                         Route{"machines", "", true}, Route{"encrypted", "", true, true},
                                         Route{"mixed", "", true, false, 2}),
                         [](const testing::TestParamInfo<Route>& way) { return way.param.name; });

std::vector<std::vector<SentMessage>> random_messages(std::mt19937& random, int ranks) {
  constexpr std::size_t counts[] = {0, 1, 50, 2048, 2049, 20000, 100000};
  std::vector<std::vector<SentMessage>> all(static_cast<std::size_t>(ranks));
  for (auto& of_rank : all) {
    const auto messages = 10 + random() % 10;
    for (std::size_t i = 0; i < messages; ++i)
      of_rank.push_back({static_cast<int>(random() % tags), counts[random() % std::size(counts)], static_cast<int>(i)});
  }
  return all;
}

TEST_P(WildcardsTest, RandomMessagesFollowTheRulesOfMpi) {
  constexpr int size = 4;
  const unsigned cases = random_cases(8);
  EXPECT_EQ(ranks(size).in_processes([&](Group& group) {
    for (unsigned seed = 0; seed < cases; ++seed) {
      std::mt19937 random(seed);
      const auto sent = random_messages(random, size);
      std::vector<Int32s> data;
      std::vector<Future> sending;
      for (const SentMessage& one : sent[static_cast<std::size_t>(group.rank())]) {
        data.push_back(message_numbers(group.rank(), one.number, one.count));
        sending.push_back(group.send(std::span<const std::int32_t>(data.back()), 0, one.tag, Mode::begin));
      }
      if (group.rank() == 0) MessageModel(group, sent, random).run();
      for (Future& each : sending) each.wait();
      group.barrier();
    }
  }),
            no_problems);
}

TEST_P(WildcardsTest, AReceiveOfAnyRankThatIsPostedFirstGetsTheMessage) {
  EXPECT_EQ(ranks(2).in_processes([](Group& group) {
    std::int32_t first = 0, second = 0;
    if (group.rank() == 0) {
      MessageStatus status;
      Future any = group.recv(std::span(&first, 1), any_source, 5, Mode::begin, &status);
      Future named = group.recv(std::span(&second, 1), 1, 5, Mode::begin);
      group.barrier();
      named.wait();
      any.wait();
      require_that(first == 1 && second == 2, "the order of the receives");
      require_that(status.source == 1 && status.tag == 5 && status.count == 1, "what the status says");
    } else {
      group.barrier();
      for (const std::int32_t value : {1, 2}) group.send(std::span(&value, 1), 0, 5);
    }
  }),
            no_problems);
}

// Exchanges and collectives have messages of their own.
TEST_P(WildcardsTest, NothingElseIsTaken) {
  EXPECT_EQ(ranks(3).in_processes([](Group& group) {
    std::int32_t taken = 0;
    Future any = group.recv(std::span(&taken, 1), any_source, any_tag, Mode::begin);
    const int right = (group.rank() + 1) % 3, left = (group.rank() + 2) % 3;
    const std::vector<double> mine(1000, group.rank());
    std::vector<double> sum(1000), from_left(1000), from_right(1000);
    group.all_reduce(std::span(mine), std::span(sum));
    const Exchange neighbors[] = {{left, std::span(mine), std::span(from_left)},
                                  {right, std::span(mine), std::span(from_right)}};
    group.neighbor_exchange(neighbors);
    require_that(sum[0] == 3 && from_left[0] == left && from_right[0] == right, "the collective and the exchange");
    auto part = group.split(0);
    part->send(std::span<const double>(mine), right, 3, Mode::wait);
    part->recv(std::span(from_left), left, 3);
    require_that(any.is_under_way() && !any.done() && !group.probe(any_source, any_tag, 0), "nothing was sent yet");
    group.barrier();
    group.send(std::span<const std::int32_t>(&right, 1), right);
    any.wait();
    require_that(taken == group.rank(), "what the left one sent");
  }),
            no_problems);
}

TEST_P(WildcardsTest, AnUnlikeMessageIsNamed) {
  struct Case {
    std::size_t sent, room;
    bool as_floats;
    std::string said;
  };
  for (const auto& [sent, room, as_floats, said] :
       {Case{10, 5, false, "rank 1 sent 40 bytes where 20 were expected"},
        Case{40000, 5, false, "rank 1 sent 160000 bytes where 20 were expected"},
        Case{10, 20, true, "rank 1 is in send of float32"}}) {
    const Problems problems = ranks(2).in_processes([&](Group& group) {
      Int32s data(group.rank() == 1 ? sent : room);
      MessageStatus status;
      if (group.rank() == 0) group.recv(std::span(data), any_source, any_tag, Mode::wait, &status);
      const std::vector<float> floats(sent);
      if (group.rank() == 1 && as_floats) group.send(std::span(floats), 0);
      if (group.rank() == 1 && !as_floats) group.send(std::span<const std::int32_t>(data), 0);
      group.barrier();
    });
    ASSERT_EQ(problems.size(), 2u);
    for (const std::string& problem : problems) EXPECT_NE(problem.find(said), std::string::npos) << problem;
  }
}

}  // namespace
}  // namespace waywiser
