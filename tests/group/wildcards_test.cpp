// Receives from any rank and of any tag, and probes.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/message_model.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string error_in(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
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
    Int32s data = message_numbers(group.rank(), 0, 3000);
    group.sendrecv(std::span(data), right, std::span(data), any_source, 4);
    require_that(data == message_numbers(left, 0, 3000), "what the left one had");
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
        Int32s data = message_numbers(1, 2, count);
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
