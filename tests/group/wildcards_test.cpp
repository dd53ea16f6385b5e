// Receives from any rank and of any tag, and probes, on every way that messages take.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <random>

#include "tests/base/random_cases.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/network/encryption.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

using Int32s = std::vector<std::int32_t>;

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string error_in(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

Int32s numbers_of(int source, int number, std::size_t count) {
  Int32s values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = source * 1'000'000 + number * 1000 + static_cast<int>(i % 1000);
  return values;
}

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

// What one rank sends to rank 0, in this order; all ranks know it.
struct Sent {
  int tag;
  std::size_t count;
  int number;
};
constexpr int tags = 3;

std::vector<std::vector<Sent>> random_messages(std::mt19937& random, int ranks) {
  constexpr std::size_t counts[] = {0, 1, 50, 2048, 2049, 20000, 100000};
  std::vector<std::vector<Sent>> all(static_cast<std::size_t>(ranks));
  for (auto& of_rank : all) {
    const auto messages = 10 + random() % 10;
    for (std::size_t i = 0; i < messages; ++i)
      of_rank.push_back({static_cast<int>(random() % tags), counts[random() % std::size(counts)], static_cast<int>(i)});
  }
  return all;
}

// A receive that rank 0 has posted, and what it was told.
struct Posted {
  Posted(int source, int tag, std::size_t room) : from(source), wanted(tag), data(room) {}
  int from, wanted;
  Int32s data;
  MessageStatus status;
  Future future;

  bool takes(int source, int tag) const {
    return (from == any_source || from == source) && (wanted == any_tag || wanted == tag);
  }
};

// Posts receives at random, such that each has a message whatever the wildcards before it take, and checks MPI's rules:
// a receive takes the earliest message of its sender that it matches and that no receive before it has taken.
class Model {
 public:
  Model(Group& group, std::vector<std::vector<Sent>> sent, std::mt19937& random)
      : group_(group), left_(std::move(sent)), random_(random) {}

  void run() {
    while (std::ranges::any_of(left_, [](const auto& of_rank) { return !of_rank.empty(); })) {
      const auto choice = random_() % 8;
      if (choice == 0)
        settle();
      else if (choice == 1)
        probe();
      else
        post();
      if (!posted_.empty() && choice == 2) static_cast<void>(posted_[random_() % posted_.size()]->future.done());
    }
    settle();
    require_that(!group_.probe(any_source, any_tag, 0), "no message is left");
  }

 private:
  // Messages that match, less the receives that may take one of them.
  long surely(int source, int tag) const {
    long count = 0;
    for (int rank = 0; rank < group_.size(); ++rank)
      for (const Sent& one : left_[static_cast<std::size_t>(rank)])
        if ((source == any_source || source == rank) && (tag == any_tag || tag == one.tag)) ++count;
    for (const auto& one : posted_)
      if ((one->from == any_source || source == any_source || one->from == source) &&
          (one->wanted == any_tag || tag == any_tag || one->wanted == tag))
        --count;
    return count;
  }

  void post() {
    const int source =
        random_() % 2 == 0 ? any_source : static_cast<int>(random_() % static_cast<unsigned>(group_.size()));
    const int tag = random_() % 2 == 0 ? any_tag : static_cast<int>(random_() % tags);
    if (surely(source, tag) <= 0) return settle();
    posted_.push_back(std::make_unique<Posted>(source, tag, 100000));
    Posted& one = *posted_.back();
    const bool waits = random_() % 3 == 0;
    one.future = group_.recv(std::span(one.data), source, tag, waits ? Mode::wait : Mode::begin, &one.status);
  }

  // With nothing posted, what a probe finds is the first message that it matches, and stays so.
  void probe() {
    settle();
    const int tag = random_() % 2 == 0 ? any_tag : static_cast<int>(random_() % tags);
    if (surely(any_source, tag) <= 0) return;
    const MessageStatus found = group_.probe(any_source, tag).value();
    const MessageStatus again = group_.probe(found.source, tag, 0).value();
    require_that(again.tag == found.tag && again.count == found.count, "a probe finds the same message again");
    Posted one(found.source, found.tag, found.count);
    group_.recv(std::span(one.data), found.source, found.tag);
    one.status = found;
    one.wanted = tag;
    check(one);
  }

  void settle() {
    while (!posted_.empty()) {
      posted_.front()->future.wait();
      check(*posted_.front());
      posted_.erase(posted_.begin());
    }
  }

  void check(const Posted& one) {
    require_that(one.takes(one.status.source, one.status.tag), "a message that was not asked for");
    auto& of_rank = left_[static_cast<std::size_t>(one.status.source)];
    const auto first = std::ranges::find_if(
        of_rank, [&](const Sent& sent) { return one.wanted == any_tag || one.wanted == sent.tag; });
    require_that(first != of_rank.end() && first->tag == one.status.tag && first->count == one.status.count &&
                     one.status.type == DataType::int32,
                 "message " + std::to_string(one.status.count) + " of rank " + std::to_string(one.status.source));
    const Int32s expected = numbers_of(one.status.source, first->number, first->count);
    require_that(std::ranges::equal(expected, std::span(one.data).first(first->count)), "its bytes");
    of_rank.erase(first);
  }

  Group& group_;
  std::vector<std::vector<Sent>> left_;  // what no settled receive has taken
  std::mt19937& random_;
  std::vector<std::unique_ptr<Posted>> posted_;
};

TEST_P(WildcardsTest, RandomMessagesFollowTheRulesOfMpi) {
  constexpr int size = 4;
  const unsigned cases = random_cases(8);
  EXPECT_EQ(ranks(size).in_processes([&](Group& group) {
    for (unsigned seed = 0; seed < cases; ++seed) {
      std::mt19937 random(seed);
      const auto sent = random_messages(random, size);
      std::vector<Int32s> data;
      std::vector<Future> sending;
      for (const Sent& one : sent[static_cast<std::size_t>(group.rank())]) {
        data.push_back(numbers_of(group.rank(), one.number, one.count));
        sending.push_back(group.send(std::span<const std::int32_t>(data.back()), 0, one.tag, Mode::begin));
      }
      if (group.rank() == 0) Model(group, sent, random).run();
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
    for (const std::string& problem : problems) EXPECT_TRUE(holds(problem, said)) << problem;
  }
}

TEST(Wildcards, WithoutAStatusTheLengthMustAgree) {
  const Problems problems = TestRanks(2).in_processes([](Group& group) {
    Int32s data(group.rank() == 1 ? 3 : 4);
    if (group.rank() == 0)
      group.recv(std::span(data), any_source);
    else
      group.send(std::span<const std::int32_t>(data), 0);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems)
    EXPECT_TRUE(holds(problem, "sent 12 bytes where 16 were expected")) << problem;
}

TEST(Wildcards, SendrecvFromAnyRank) {
  EXPECT_EQ(TestRanks(3).in_processes([](Group& group) {
    const int right = (group.rank() + 1) % 3, left = (group.rank() + 2) % 3;
    Int32s data = numbers_of(group.rank(), 0, 3000);
    group.sendrecv(std::span(data), right, std::span(data), any_source, 4);
    require_that(data == numbers_of(left, 0, 3000), "what the left one had");
  }),
            no_problems);
}

// A sender that is a server's guest is not served after all others.
TEST(Wildcards, EachSenderHasItsTurn) {
  EXPECT_EQ(TestRanks(4).in_processes([](Group& group) {
    constexpr int messages = 100;
    std::int32_t value = group.rank();
    if (group.rank() != 0) {
      std::vector<Future> sending;
      for (int i = 0; i < messages; ++i) sending.push_back(group.send(std::span(&value, 1), 0, 0, Mode::begin));
      group.barrier();
      for (Future& each : sending) each.wait();
      return;
    }
    group.barrier();
    std::vector<int> taken(4);
    MessageStatus status;
    for (int i = 0; i < 30; ++i) {
      group.recv(std::span(&value, 1), any_source, 0, Mode::wait, &status);
      ++taken[static_cast<std::size_t>(status.source)];
    }
    require_that(taken == std::vector<int>{0, 10, 10, 10}, "the same number of each");
    for (int i = 0; i < 3 * messages - 30; ++i) group.recv(std::span(&value, 1), any_source);
  }),
            no_problems);
}

TEST(Wildcards, AProbeWaitsAsLongAsItIsTold) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    if (group.rank() == 0) {
      require_that(!group.probe(any_source, any_tag, 0) && !group.probe(1, 3, 0.01), "nothing has come");
      group.barrier();
      const MessageStatus status = group.probe(any_source, any_tag, 20).value();
      require_that(status.source == 1 && status.tag == 3 && status.type == DataType::float64 && status.count == 7,
                   "what has come");
      require_that(!group.probe(1, 4, 0), "another tag");
    } else {
      group.barrier();
    }
    std::vector<double> data(7, 1.5);
    if (group.rank() == 1) group.send(std::span<const double>(data), 0, 3);
    if (group.rank() == 0) group.recv(std::span(data), 1, 3);
    for (const Seconds none : {-1.0, std::numeric_limits<double>::quiet_NaN(), 1e30})
      require_that(holds(error_in([&] { static_cast<void>(group.probe(1, 0, none)); }), "is not in 0 to"),
                   "a patience that is none");
    require_that(holds(error_in([&] { static_cast<void>(group.probe(2)); }), "the group has ranks 0 to 1"), "a rank");
    require_that(holds(error_in([&] { static_cast<void>(group.probe(0, -1)); }), "is not in 0 to 32767"), "a tag");
    group.barrier();
  }),
            no_problems);
}

TEST(Wildcards, StreamsNameTheirSource) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Place gpu = gpu_of_rank(group);
    const Memory memory = group.platform()->allocate(gpu, 4096, Allocation::gpu);
    const auto stream = group.platform()->open_stream(gpu);
    const Elements array(memory.region(), DataType::int32);
    const std::string said = error_in([&] { group.recv(array, any_source, 0, Mode::on(*stream)); });
    require_that(holds(said, "recv on a stream: it names its source"), said);
  }),
            no_problems);
}

// From a GPU or a host to a GPU or a host.
TEST(Wildcards, ArraysOfGpus) {
  for (const bool apart : {false, true})
    for (const std::size_t count : {std::size_t{100}, std::size_t{50000}}) {
      TestRanks ranks(2);
      ranks.virtual_gpus = 2;
      ranks.machines_apart = apart;
      EXPECT_EQ(ranks.in_processes([&](Group& group) {
        const Place gpu = gpu_of_rank(group);
        const Memory memory = group.platform()->allocate(gpu, count * sizeof(std::int32_t), Allocation::gpu);
        const Elements on_gpu(memory.region(), DataType::int32);
        const auto stream = group.platform()->open_stream(gpu);
        Int32s data = numbers_of(1, 2, count);
        const Region here{reinterpret_cast<std::byte*>(data.data()), count * sizeof(std::int32_t), host(0)};
        if (group.rank() == 1) {
          stream->copy(memory.region(), here);
          stream->synchronize(Deadline::in(20));
          for (const bool gives_gpu : {true, false})
            for (int taker = 0; taker < 2; ++taker) {
              group.send(gives_gpu ? ConstElements(on_gpu) : ConstElements(here, DataType::int32), 0, taker);
              group.barrier();
            }
          return;
        }
        for (int message = 0; message < 4; ++message) {
          const bool gives_gpu = message < 2, takes_gpu = message % 2 == 1;
          if (gives_gpu && (count > 2048 || !apart)) {
            const std::string said = error_in([&] { static_cast<void>(group.probe()); });
            require_that(holds(said, "rank 1 sends an array of a GPU, whose length"), said);
          } else {
            require_that(group.probe().value().count == count, "the length of what comes from the host");
          }
          Int32s taken(count);
          const Region there{reinterpret_cast<std::byte*>(taken.data()), count * sizeof(std::int32_t), host(0)};
          MessageStatus status;
          group.recv(takes_gpu ? on_gpu : Elements(there, DataType::int32), any_source, any_tag, Mode::wait, &status);
          if (takes_gpu) {
            stream->copy(there, memory.region());
            stream->synchronize(Deadline::in(20));
          }
          require_that(taken == data, "the bytes of message " + std::to_string(message));
          require_that(status.source == 1 && status.tag == message % 2 && status.count == count, "its status");
          group.barrier();
        }
      }),
                no_problems);
    }
}

// A dropped future that keeps its array goes on; one that does not fails the group.
TEST(Wildcards, ADroppedReceiveGoesOnIfItKeepsItsArray) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    auto value = std::make_shared<std::int32_t>(0);
    if (group.rank() == 0) {
      Future any = group.recv(std::span(value.get(), 1), any_source, any_tag, Mode::begin);
      any.keep(value);
    }
    group.barrier();
    const std::int32_t sent = 5;
    if (group.rank() == 1) group.send(std::span(&sent, 1), 0);
    group.barrier();
    if (group.rank() == 0) {
      while (value.use_count() > 1) static_cast<void>(group.probe(any_source, any_tag, 0));
      require_that(*value == 5, "what has come");
    }
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
