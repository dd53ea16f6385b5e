// Every device call, on hosts and virtual GPUs; cuda/device_calls_on_gpus_test.cu: the same on GPUs.
#include <gtest/gtest.h>

#include "tests/heap/device_bodies.hpp"
#include "tests/heap/heap_ranks.hpp"
#include "tests/heap/host_bodies.hpp"
#include "tests/heap/message_bodies.hpp"

namespace waywiser {
namespace {

using namespace one_sided;

struct NotOfRankOne {
  template <typename Gpu>
  static void run(const BodyRanks<Gpu>& body) {
    body.need(body.rank(), 0, 17);
  }
};

TEST(HeapDeviceCalls, AreAsPlainArraysSay) {
  EXPECT_EQ(problems_of(2,
                        [](Group& group, Place place) {
                          each_body([&](const char* name, auto body) {
                            run_body(group, place, name, 100, 20, launch_on_host<decltype(body)>);
                          });
                        }),
            "");
}

TEST(HeapDeviceCalls, MessagesGoByEveryProtocol) {
  EXPECT_EQ(
      problems_of(3, [](Group& group,
                        Place place) { run_body(group, place, "messages", 90, 20, launch_on_host<MessageCalls>); }),
      "");
}

// Ranks of two machines: the proxy carries packets, puts and signals.
TEST(HeapDeviceCalls, MessagesGoByTheProxy) {
  EXPECT_EQ(
      problems_of(
          2,
          [](Group& group, Place place) { run_body(group, place, "messages", 90, 20, launch_on_host<MessageCalls>); },
          20, 1),
      "");
}

TEST(HeapDeviceCalls, WhatIsWrongIsTold) {
  const std::string said = problems_of(
      2, [](Group& group, Place place) { run_body(group, place, "wrong", 1, 20, launch_on_host<NotOfRankOne>); }, 2);
  EXPECT_NE(said.find("rank 1: expected: wrong: line "), std::string::npos) << said;
  EXPECT_NE(said.find(" at 17, thread 0: 0.000000, not 1.000000"), std::string::npos) << said;
}

}  // namespace
}  // namespace waywiser
