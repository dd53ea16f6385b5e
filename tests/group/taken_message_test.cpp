#include "waywiser/group/taken_message.hpp"

#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"

namespace waywiser {
namespace {

std::vector<int> numbers_from(int first, std::size_t count) {
  std::vector<int> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = first + static_cast<int>(i);
  return all;
}

void require_message(TakenMessage& message, int first, std::size_t count) {
  require_that(message.status().source == 0 && message.status().count == count, "its status");
  std::vector<int> came(count + 2, -1);
  message.receive(std::span(came));
  require_that(std::equal(came.begin(), came.end() - 2, numbers_from(first, count).begin()), "its numbers");
  require_that(came.back() == -1, "what is behind it");
}

// Short ones, and those whose sender waits for the receiver.
void take_in_any_order(Group& group, std::size_t count) {
  if (group.rank() == 0) {
    std::vector<std::vector<int>> sent;
    std::vector<Future> futures;
    for (const int first : {10, 20, 30, 40}) sent.push_back(numbers_from(first, count));
    for (const auto& each : sent) futures.push_back(group.send(std::span(each), 1, 3, Mode::begin));
    wait_all(futures);
    group.barrier();
    return;
  }
  auto first = mprobe(group), second = mprobe(group, 0, 3);
  std::vector<int> third(count);
  group.recv(std::span(third), 0, 3);
  require_that(third == numbers_from(30, count), "a receive gets what no probe has taken");
  require_message(*second, 20, count);
  require_message(*first, 10, count);
  auto fourth = mprobe(group, any_source, 3, 20);
  require_message(*fourth, 40, count);
  require_that(!mprobe(group, any_source, any_tag, 0), "nothing else has come");
  group.barrier();
}

TEST(TakenMessage, IsSeenByNobodyElse) {
  for (const bool machines_apart : {false, true}) {
    TestRanks ranks(2);
    ranks.machines_apart = machines_apart;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      for (const std::size_t count : {0, 1, 5000, 300000}) take_in_any_order(group, count);
      group.barrier();
    }),
              no_problems)
        << machines_apart;
  }
}

TEST(TakenMessage, StaysWhenTheArrayDoesNotFitAndIsReceivedOnce) {
  EXPECT_EQ(TestRanks(1).in_processes([](Group& group) {
    const std::vector<int> sent = numbers_from(7, 3);
    group.send(std::span(sent), 0);
    auto message = mprobe(group);
    std::vector<int> shorter(2), came(3);
    std::vector<float> floats(3);
    const std::string what = "a message of 3 int32 from rank 0 ";
    require_that(error_of([&] { message->receive(std::span(shorter)); }) == what + "into 2 int32", "a short array");
    require_that(error_of([&] { message->receive(std::span(floats)); }) == what + "into 3 float32", "another type");
    message->receive(std::span(came));
    require_that(came == sent, "the numbers");
    require_that(error_of([&] { message->receive(std::span(came)); }) == what + "has been received already", "twice");
    group.send(std::span(sent), 0);
    const bool found = mprobe(group).has_value();
    require_that(found, "a message for nobody");
    require_that(!group.probe(any_source, any_tag, 0), "what is thrown away is lost");
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
