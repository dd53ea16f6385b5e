// Messages within a machine, under every interleaving of their two ranks.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/explorer/expect.hpp"
#include "tests/explorer/machine.hpp"

namespace waywiser::explorer {
namespace {

constexpr Tag tag(unsigned label) { return Tag{label} << description_bits; }

// Messages in one direction, with equal or different tags, shorter and longer than a cache line.
TEST(ExploredLane, EachMessageComesOnceAndWhole) {
  expect_no_problem("lane",
                    [](Course& course) {
                      const Machine machine(course);
                      LaneMemory* memory = Machine::lane(0, 1);
                      const std::vector<std::size_t> lengths{4, 0, 12, 70, 3};
                      course.thread("writer", [&] {
                        LaneWriter writer(memory);
                        for (unsigned i = 0; i < lengths.size(); ++i) {
                          const std::vector<std::byte> data = numbered(lengths[i], i);
                          while (!writer.write(1 + i / 2, data.data(), data.size())) course.idle();
                        }
                      });
                      course.thread("reader", [&] {
                        LaneReader reader(memory);
                        for (unsigned i = 0; i < lengths.size(); ++i) {
                          LaneMessage next;
                          while (!(next = reader.peek())) course.idle();
                          course.require(next.tag == 1 + i / 2 && next.bytes == lengths[i], "another message has come");
                          const std::vector<std::byte> data = numbered(lengths[i], i);
                          course.require(std::equal(data.begin(), data.end(), next.data), "other bytes have come");
                          reader.pop();
                        }
                        course.require(!reader.peek(), "one message too many has come");
                      });
                      course.go();
                    },
                    {.deviations = 4});
}

struct Exchange {
  std::vector<std::size_t> lengths;
  std::vector<unsigned> order;  // in which they are received
  Forbidden forbidden = {};
};

// Each message has its own tag. The receiver waits for one message after another.
void exchange(Course& course, const Exchange& what) {
  Machine machine(course, what.forbidden);
  const std::size_t count = what.lengths.size();
  std::vector<std::vector<std::byte>> out, in;
  for (unsigned i = 0; i < count; ++i) {
    out.push_back(numbered(what.lengths[i], i));
    in.emplace_back(what.lengths[i]);
  }
  for (unsigned i = 0; i < count; ++i) {
    machine.lend("what is sent", out[i]);
    machine.lend("where it goes", in[i]);
  }
  std::vector<Message> sends(count), receives(count);
  course.thread("sender", [&] {
    for (unsigned i = 0; i < count; ++i) machine.begin_send(sends[i], tag(i), out[i]);
    for (unsigned i = 0; i < count; ++i) {
      machine.finish(0, sends[i]);
      course.give_back(out[i].data());
    }
  });
  course.thread("receiver", [&] {
    for (const unsigned i : what.order) {
      machine.begin_receive(receives[i], tag(i), in[i]);
      machine.finish(1, receives[i]);
      course.require(receives[i].info.bytes == what.lengths[i], "another length has come");
      course.give_back(in[i].data());
    }
  });
  course.go();
  course.require(machine.is_quiet(), "what is complete is still awaited");
  for (unsigned i = 0; i < count; ++i) course.require(are_alike(in[i], out[i]), "other bytes have come");
}

void expect_exchanged(const char* name, const Exchange& what, Bounds bounds = {}) {
  expect_no_problem(name, [&](Course& course) { exchange(course, what); }, bounds);
}

TEST(ExploredMailbox, ShortMessagesInAnyOrder) {
  expect_exchanged("two short messages", {{8, 100}, {0, 1}}, {.deviations = 4});
  expect_exchanged("two short messages, received in the other order", {{8, 100}, {1, 0}}, {.deviations = 4});
}

TEST(ExploredMailbox, MessagesInSlots) {
  expect_exchanged("one in a slot, two in units", {{300, 5, 40}, {0, 1, 2}}, {.deviations = 2});
  expect_exchanged("two in slots, received in the other order", {{300, 5000}, {1, 0}}, {.deviations = 2});
}

// 32 messages fill the slots; the later ones find no room.
TEST(ExploredMailbox, ALaneThatIsFull) {
  Exchange what;
  for (unsigned i = 0; i < 34; ++i) {
    what.lengths.push_back(8192);
    what.order.push_back(i);
  }
  what.lengths.push_back(20);
  what.order.push_back(34);
  expect_exchanged("more than a lane holds", what, {.deviations = 0});
  std::ranges::reverse(what.order);
  expect_exchanged("more than a lane holds, the last one first", what, {.deviations = 0});
}

TEST(ExploredSharedCopy, BothEndsCopy) {
  expect_exchanged("a long message", {{70000}, {0}}, {.deviations = 3});
  expect_exchanged("a long message of three chunks", {{524289}, {0}}, {.deviations = 1});
  expect_exchanged("two long messages", {{70000, 66000}, {1, 0}}, {.deviations = 2});
}

TEST(ExploredSharedCopy, TheReceiverCopiesAlone) {
  expect_exchanged("a message that is not long", {{40000}, {0}}, {.deviations = 3});
  expect_exchanged("two of them", {{40000, 20000}, {1, 0}}, {.deviations = 2});
  expect_exchanged("the receiver may not read alone", {{40000}, {0}, {.receiver_reads = true}}, {.deviations = 3});
}

TEST(ExploredSharedCopy, WhatTheSenderCannotWriteTheReceiverReads) {
  expect_exchanged("the sender may not write", {{70000}, {0}, {.sender_writes = true}}, {.deviations = 3});
}

TEST(ExploredSharedCopy, WhatTheReceiverCannotReadComesByUcx) {
  expect_exchanged("the receiver may not read", {{70000}, {0}, {.receiver_reads = true}}, {.deviations = 3});
  expect_exchanged("neither may", {{70000}, {0}, {.sender_writes = true, .receiver_reads = true}}, {.deviations = 3});
}

// A rank that gives up waits until nobody holds its memory; afterwards nobody touches it. The other rank gives up
// later; otherwise it would wait for ever.
void give_up(Course& course, std::size_t bytes, Forbidden forbidden) {
  Machine machine(course, forbidden);
  const std::vector<std::byte> out = numbered(bytes, 1), expected = out;
  std::vector<std::byte> in(bytes);
  machine.lend("what is sent", out);
  machine.lend("where it goes", in);
  Message send, receive;
  course.thread("sender", [&] {
    machine.begin_send(send, tag(1), out);
    machine.finish_or_cancel(0, send);
    course.give_back(out.data());
  });
  course.thread("receiver", [&] {
    machine.begin_receive(receive, tag(1), in);
    if (machine.finish_or_cancel(1, receive)) course.require(are_alike(in, expected), "other bytes have come");
    course.give_back(in.data());
  });
  course.go();
}

TEST(ExploredAbandon, NobodyTouchesMemoryThatWasGivenUp) {
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{40000}, std::size_t{70000}})
    for (const Forbidden forbidden : {Forbidden{}, Forbidden{.sender_writes = true}, Forbidden{.receiver_reads = true}})
      expect_no_problem(std::to_string(bytes) + " bytes that are given up" +
                            (forbidden.sender_writes ? ", the sender may not write" : "") +
                            (forbidden.receiver_reads ? ", the receiver may not read" : ""),
                        [&](Course& course) { give_up(course, bytes, forbidden); }, {.deviations = 3});
}

}  // namespace
}  // namespace waywiser::explorer
