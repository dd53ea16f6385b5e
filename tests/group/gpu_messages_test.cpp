// Messages on streams of virtual GPUs.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/compared_calls.hpp"
#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/comm/shared_memory/lane.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// A message on a stream that goes through the host never matches a message of the user, whatever its tag.
TEST(GroupOnGpus, MessagesOnStreamsByWayOfTheHostHaveNoTagOfTheUser) {
  VirtualMachine machine;
  machine.gpus = 2;
  machine.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
  EXPECT_EQ(on_platforms(
                2, [&](int) { return open_virtual_platform(machine); },
                [](Group& group) {
                  const int other = 1 - group.rank();
                  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
                  Twins twins(group, DataType::int32, 100, group.rank());
                  group.barrier(Mode::on(*stream));
                  std::vector<std::int32_t> plain(100, group.rank() == 0 ? 7 : 0);
                  if (group.rank() == 0) {
                    Future sent = group.send(std::span(plain), other, 0x7fff, Mode::begin);
                    group.send(twins.gpu_elements(), other, 0, Mode::on(*stream));
                    sent.wait();
                    group.send(twins.host_elements(), other, 1);
                  } else {
                    group.recv(twins.gpu_elements(), other, 0, Mode::on(*stream));
                    group.recv(std::span(plain), other, 0x7fff);
                    group.recv(twins.host_elements(), other, 1);
                  }
                  group.synchronize(*stream);
                  require_that(plain == std::vector<std::int32_t>(100, 7), "the message of the user");
                  require_that(twins.equal(), "the message on the stream");
                }),
            no_problems);
}

// Messages are sent before they are asked for, on a GPU or on a host, and received in another order.
TEST(GroupOnGpus, MessagesThatAreThereEarly) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    for (const std::size_t count : {2, 2048, 5000}) {
      Twins to_gpu(group, DataType::float32, count, group.rank()), to_host(group, DataType::float32, count, 1);
      std::vector<float> on_host(count, 0);
      const auto check_host = [&] {
        const std::byte* expected = to_host.host_elements().region.data;
        require_that(std::memcmp(on_host.data(), expected, count * sizeof(float)) == 0, "what came to the host");
        on_host.assign(count, 0);
      };
      if (group.rank() == 0) {
        Future first = group.send(to_gpu.gpu_elements(), 1, 1, Mode::begin);
        Future second = group.send(to_host.gpu_elements(), 1, 2, Mode::begin);
        Future third = group.send(to_host.gpu_elements(), 1, 3, Mode::begin);
        group.barrier();
        for (Future* sent : {&first, &second, &third}) sent->wait();
      } else {
        group.barrier();
        Future taking = group.recv(std::span(on_host), 0, 2, Mode::begin);
        group.recv(to_gpu.gpu_elements(), 0, 1);
        taking.wait();
        check_host();
        group.recv(std::span(on_host), 0, 3);
        check_host();
      }
      if (group.rank() == 0) group.send(to_gpu.host_elements(), 1);
      if (group.rank() == 1) group.recv(to_gpu.host_elements(), 0);
      require_that(to_gpu.equal(), "what came to the GPU");
    }
  }),
            no_problems);
}

// More messages than there are numbers for announcements, received in the opposite order.
TEST(GroupOnGpus, ThousandsOfMessagesAtOnce) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    constexpr std::size_t messages = rts_numbers + 100;
    Twins array(group, DataType::int32, messages, group.rank());
    const auto element = [&](const Elements& all, std::size_t i) { return all.slice(i, 1); };
    std::vector<Future> sent;
    if (group.rank() == 0) {
      for (std::size_t i = 0; i < messages; ++i)
        sent.push_back(group.send(element(array.gpu_elements(), i), 1, static_cast<int>(i), Mode::begin));
      group.barrier();
      for (Future& each : sent) each.wait();
      group.send(array.host_elements(), 1);
    } else {
      group.barrier();
      for (std::size_t i = messages; i-- > 0;) group.recv(element(array.gpu_elements(), i), 0, static_cast<int>(i));
      group.recv(array.host_elements(), 0);
    }
    require_that(array.equal(), "every element in its place");
  }),
            no_problems);
}

// The sender waits for numbers: these are too long for the host.
TEST(GroupOnGpus, ThousandsOfLongMessagesAtOnce) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    constexpr std::size_t messages = rts_numbers + 100, each = longest_short / 4 + 1;
    Twins array(group, DataType::int32, messages * each, group.rank());
    std::vector<Future> sent;
    for (std::size_t i = 0; i < messages; ++i) {
      const Elements part = array.gpu_elements().slice(i * each, each);
      if (group.rank() == 0) sent.push_back(group.send(part, 1, 0, Mode::begin));
      if (group.rank() == 1) group.recv(part, 0);
    }
    for (Future& one : sent) one.wait();
    if (group.rank() == 0) group.send(array.host_elements(), 1);
    if (group.rank() == 1) group.recv(array.host_elements(), 0);
    require_that(array.equal(), "every element in its place");
  }),
            no_problems);
}

TEST(GroupOnGpus, MessagesOnStreams) {
  for (const int size : {2, 3}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      group.barrier(Mode::on(*group.platform()->open_stream(gpu_of_rank(group))));
      exchange_on_stream(group, 3, 6);
      for (const std::size_t count : {2048, 2049, 2168, 2169, 5001, 1500001}) exchange_on_stream(group, count, 2);
      exchange_on_stream(group, 1000000, 6);
      exchange_on_stream(group, 6000001, 1);  // 12 MB in bulk
    }),
              no_problems);
  }
}

TEST(GroupOnGpus, ManyMessagesAreOnTheirWayInOrder) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    const auto other = group.platform()->open_stream(gpu_of_rank(group));
    group.barrier(Mode::on(*stream));
    std::vector<Twins> arrays;
    for (int i = 0; i < 20; ++i) arrays.emplace_back(group, DataType::int32, 10 + 3 * static_cast<std::size_t>(i), i);
    for (int i = 0; i < 20; ++i) {
      const Elements all = arrays[static_cast<std::size_t>(i)].gpu_elements();
      if (group.rank() == 0) group.send(all, 1, 0, Mode::on(i % 2 == 0 ? *stream : *other));
      if (group.rank() == 1) group.recv(all, 0, 0, Mode::on(*stream));
    }
    group.synchronize(*other);
    group.synchronize(*stream);
    for (Twins& each : arrays) require_that(each.equal(), "what was sent in this place of the order");
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
