#include "waywiser/group/group.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <utility>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

std::vector<float> floats_of(int rank, std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), static_cast<float>(1000 * rank));
  return values;
}

// Everybody sends to everybody; also to itself, of several sizes.
void exchange_with_all(Group& group) {
  for (const std::size_t count : {0, 1, 1000, 300000}) {
    const std::vector<float> mine = floats_of(group.rank(), count);
    for (int step = 0; step < group.size(); ++step) {
      const int to = (group.rank() + step) % group.size();
      const int from = (group.rank() + group.size() - step) % group.size();
      std::vector<float> theirs(count);
      group.sendrecv(std::span(mine), to, std::span(theirs), from, step);
      require_that(theirs == floats_of(from, count), "what rank " + std::to_string(from) + " sent");
    }
  }
}

TEST(Group, EveryRankReachesEveryOther) {
  for (const int size : {1, 2, 8}) EXPECT_EQ(TestRanks(size).in_processes(exchange_with_all), no_problems) << size;
}

TEST(Group, SendrecvFromAndIntoOneArray) {
  for (const int virtual_gpus : {0, 1})
    for (const int size : {1, 3}) {
      TestRanks ranks(size);
      ranks.virtual_gpus = virtual_gpus;
      EXPECT_EQ(ranks.in_processes([size](Group& group) {
        const int right = (group.rank() + 1) % size, left = (group.rank() + size - 1) % size;
        for (const std::size_t count : {1, 1000, 300000}) {
          std::vector<float> data = floats_of(group.rank(), count);
          group.sendrecv(std::span(data), right, std::span(data), left);
          require_that(data == floats_of(left, count), "what the left one had");
        }
        std::vector<float> data(10);
        try {
          group.sendrecv(std::span(data).first(6), right, std::span(data).last(6), left);
          require_that(false, "overlapping arrays to be refused");
        } catch (const Error& error) {
          require_that(std::string(error.what()).find("the two arrays overlap") != std::string::npos, error.what());
        }
        group.barrier();
      }),
                no_problems);
    }
}

TEST(Group, RanksCanBeThreads) { EXPECT_EQ(TestRanks(3).in_threads(exchange_with_all), no_problems); }

TEST(Group, MessagesOfOneTagComeInOrderAndTagsTellThemApart) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    if (group.rank() == 0) {
      for (std::int32_t i = 0; i < 100; ++i) group.send(std::span(&i, 1), 1, 5);
      const std::int32_t other = -1;
      group.send(std::span(&other, 1), 1, 6);
      return;
    }
    std::int32_t got = 0;
    group.recv(std::span(&got, 1), 0, 6);
    require_that(got == -1, "the message of tag 6 first");
    for (std::int32_t i = 0; i < 100; ++i) {
      group.recv(std::span(&got, 1), 0, 5);
      require_that(got == i, "message " + std::to_string(i));
    }
  }),
            no_problems);
}

TEST(Group, FuturesOfManyMessagesInAnyOrder) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    const int other = 1 - group.rank();
    const std::vector<float> mine = floats_of(group.rank(), 50000);
    std::vector<std::vector<float>> theirs(8, std::vector<float>(50000));
    std::vector<Future> futures;
    for (int i = 0; i < 8; ++i)
      futures.push_back(group.recv(std::span(theirs[static_cast<std::size_t>(i)]), other, i, Mode::begin));
    for (int i = 7; i >= 0; --i) futures.push_back(group.send(std::span(mine), other, i, Mode::begin));
    while (!futures.back().done()) {
    }
    for (Future& future : futures) future.wait();
    for (const auto& got : theirs) require_that(got == floats_of(other, 50000), "all messages");
  }),
            no_problems);
}

// On a ring of two, the other is the neighbour on both sides.
TEST(Group, NeighborsOnARing) {
  for (const int size : {2, 3})
    EXPECT_EQ(TestRanks(size).in_processes([size](Group& group) {
      const int left = (group.rank() + size - 1) % size, right = (group.rank() + 1) % size;
      const std::vector<float> to_left = floats_of(group.rank(), 10), to_right = floats_of(group.rank() + 100, 20);
      std::vector<float> from_left(20), from_right(10);
      constexpr int leftward = 1, rightward = 2;
      const Exchange neighbors[] = {{left, std::span(to_left), std::span(from_left), leftward, rightward},
                                    {right, std::span(to_right), std::span(from_right), rightward, leftward}};
      group.neighbor_exchange(neighbors);
      require_that(from_left == floats_of(left + 100, 20) && from_right == floats_of(right, 10), "both neighbours");
    }),
              no_problems);
}

// Calls of several messages that only begin: in one array, which is sent as it was, and with several neighbours.
TEST(Group, ExchangesCanBegin) {
  constexpr int size = 3;
  EXPECT_EQ(TestRanks(size).in_processes([](Group& group) {
    const int right = (group.rank() + 1) % size, left = (group.rank() + size - 1) % size;
    for (const std::size_t count : {0, 1, 1000, 300000}) {
      std::vector<float> moved = floats_of(group.rank(), count), from_left(count), from_right(count);
      const std::vector<float> mine = moved;
      const Exchange neighbors[] = {{left, std::span(mine), std::span(from_left), 1, 2},
                                    {right, std::span(mine), std::span(from_right), 2, 1}};
      Future both = group.neighbor_exchange(neighbors, Mode::begin);
      Future around = group.sendrecv(std::span(moved), right, std::span(moved), left, 7, Mode::begin);
      around.wait();
      while (!both.done()) {
      }
      require_that(moved == floats_of(left, count), "what the left one had");
      require_that(from_left == floats_of(left, count) && from_right == floats_of(right, count), "both neighbours");
    }
    require_that(!group.neighbor_exchange({}, Mode::begin).is_under_way(), "nothing to do for no neighbours");
  }),
            no_problems);
}

TEST(Group, AnExchangeThatIsNotCompleteNamesWhatItWaitsFor) {
  const auto problems = TestRanks(2).in_threads([](Group& group) {
    if (group.rank() == 1) {
      group.barrier();
      return;
    }
    group.set_timeout(0.2);
    std::vector<float> mine(10), theirs(10);
    group.sendrecv(std::span(mine), 1, std::span(theirs), 1, 0, Mode::begin).wait();
  });
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("sendrecv #"), std::string::npos) << problems[0];
  EXPECT_NE(problems[0].find("recv #"), std::string::npos) << problems[0];
}

TEST(Group, MessagesOnStreamsHaveNoTag) {
  EXPECT_EQ(TestRanks(1).in_threads([](Group& group) {
    std::vector<float> data(2);
    const auto stream = open_host_platform()->open_stream(host(0));
    EXPECT_THROW(group.send(std::span(data), 0, 5, Mode::on(*stream)), Error);
    EXPECT_THROW(group.recv(std::span(data), 0, 5, Mode::on(*stream)), Error);
  }),
            no_problems);
}

// The received data would overwrite data that are being sent or received.
TEST(Group, NeighborsWhoseArraysOverlapAreRefused) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    std::vector<float> all = floats_of(group.rank(), 30);
    const std::vector<float> before = all;
    const std::span<float> whole(all);
    const int other = 1 - group.rank();
    const auto refused = [&](const std::vector<Exchange>& neighbors, const std::string& why) {
      try {
        group.neighbor_exchange(neighbors);
      } catch (const Error& error) {
        require_that(error.kind() == ErrorKind::invalid_input && error.what() == "neighbor_exchange: " + why, why);
        return;
      }
      require_that(false, "a refusal, not " + why);
    };
    const std::string taken = "the array taken from rank " + std::to_string(other) + " overlaps the array ",
                      rank = " rank " + std::to_string(other);
    refused({{other, whole, whole}}, taken + "given to" + rank);
    refused({{other, whole.first(20), whole.last(20)}}, taken + "given to" + rank);
    refused({{other, whole.first(10), whole.subspan(10, 10), 1, 2}, {other, whole.subspan(15, 10), {}, 2, 1}},
            taken + "given to" + rank);
    refused({{other, {}, whole.first(11), 1, 2}, {other, {}, whole.subspan(10, 10), 2, 1}},
            taken + "taken from" + rank);
    require_that(all == before, "nothing to have come");
    const Exchange apart[] = {{other, whole.first(10), whole.subspan(10, 10)}};
    group.neighbor_exchange(apart);
    require_that(all[10] == floats_of(other, 1)[0], "what does not overlap");
  }),
            no_problems);
}

TEST(Group, SplitMakesGroupsByColorInTheOrderOfTheKeys) {
  EXPECT_EQ(TestRanks(5).in_processes([](Group& group) {
    const int color = group.rank() == 4 ? -1 : group.rank() % 2;
    std::optional<Group> half = group.split(color, -group.rank());
    require_that(half.has_value() == (color >= 0), "no group for a color below 0");
    if (!half) return;
    require_that(half->size() == 2 && half->rank() == (group.rank() < 2 ? 1 : 0), "the larger rank first");
    float got = -1;
    const auto mine = static_cast<float>(group.rank());
    half->sendrecv(std::span(&mine, 1), 1 - half->rank(), std::span(&got, 1), 1 - half->rank());
    require_that(static_cast<int>(got) == (group.rank() + 2) % 4, "the other of the same color");
    std::optional<Group> alone = half->split(half->rank());
    require_that(alone && alone->size() == 1, "a group of one");
  }),
            no_problems);
}

// Arrays of more than 2^31 elements, of which only a page is touched.
TEST(Group, SlicesBeyond32Bits) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    constexpr std::size_t far = (std::size_t{1} << 32) + 12345, count = 1000;
    const Mapping memory = Mapping::anonymous(far + count, "a sparse array");
    const int other = 1 - group.rank();
    std::fill_n(memory.data() + far, count, static_cast<std::byte>(group.rank() + 1));
    const Elements all({memory.data(), far + count, host(0)}, DataType::uint8);
    group.sendrecv(all.slice(far, count), other, all.slice(far - count, count), other);
    require_that(memory.data()[far - 1] == static_cast<std::byte>(other + 1), "the slice");
  }),
            no_problems);
}

TEST(Group, OneThatWasMovedFromSaysSoAndCanBeAssignedTo) {
  EXPECT_EQ(TestRanks(2).in_processes([](Group& group) {
    Group other(std::move(group));
    int number = 1;
    const Elements one = std::span(&number, 1);
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { group.rank(); }, [&] { group.size(); }, [&] { group.timeout(); }, [&] { group.platform(); },
             [&] { group.all_reduce(one, one); }, [&] { group.send(one, 0); }, [&] { group.split(0); },
             [&] { group.expose(one.region); }, [&] { group.prepare_exchange({}); }, [&] { group.close(); }}) {
      const std::string said = error_of(call);
      require_that(said == "this Group was moved from: its ranks are in another one", said);
    }
    group.abort("nobody hears it");
    leave_to_end(group);
    group = std::move(other);
    group.barrier();
  }),
            no_problems);
}

TEST(Group, WrongArgumentsAreRefusedWithoutHarm) {
  EXPECT_EQ(TestRanks(1).in_threads([](Group& group) {
    std::vector<float> data(2);
    EXPECT_THROW(group.send(std::span(data), 1), Error);
    EXPECT_THROW(group.recv(std::span(data), -1), Error);
    EXPECT_THROW(group.send(std::span(data), 0, 32768), Error);
    EXPECT_THROW(group.set_timeout(0), Error);
    EXPECT_THROW(ConstElements(ConstRegion{nullptr, 3, host(0)}, DataType::float32), Error);
    Future sent = group.send(std::span(data), 0, 0, Mode::begin);
    group.recv(std::span(data), 0);
    sent.wait();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
