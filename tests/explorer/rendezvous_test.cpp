// Messages out of GPUs, under every order of control messages and GPU work.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/explorer/devices.hpp"
#include "tests/explorer/expect.hpp"
#include "tests/explorer/network.hpp"
#include "waywiser/comm/rendezvous/gpu_receive.hpp"
#include "waywiser/comm/rendezvous/rendezvous_send.hpp"

namespace waywiser::explorer {
namespace {

struct GpuMessage {
  Reach reach = {};
  bool into_host = false, is_staged = false;
  Bytes bytes = 100;
  std::size_t runs = 1;
};

// Rank 0 sends out of its GPU, rank 1 receives.
class Exchange {
 public:
  Exchange(Course& course, const GpuMessage& what)
      : course_(course), what_(what), network_(course), devices_(course), sent_(what.bytes), got_(what.bytes) {
    for (int rank = 0; rank < 2; ++rank)
      sessions_.push_back(std::make_unique<Session>(network_, rank, devices_, what.reach));
    for (Bytes i = 0; i < what.bytes; ++i) sent_[i] = static_cast<std::byte>(i * 7 + 1);
    for (const ConstRegion& run : runs({sent_.data(), what.bytes, gpu(0)}))
      expected_.insert(expected_.end(), run.data, run.data + run.bytes);
    course.regions.share("what is sent", sent_.data(), sent_.size(), 0);
    course.regions.share("where it goes", got_.data(), got_.size(), 0);
  }

  void go(bool may_give_up) {
    course_.thread("sender", [&] { send(may_give_up); });
    course_.thread("receiver", [&] { receive(may_give_up); });
    course_.thread("the network", [&] { network_.carry(); }, true);
    course_.thread("the GPUs", [&] { devices_.work(); }, true);
    course_.go();
    course_.require(network_.is_empty(), "what was given up or is complete is under way");
    if (failed_) return;
    course_.require(got_ == expected_, "other bytes have come");
    course_.require(sessions_[0]->rts.given_back == 1, "the message's number was not given back once");
    for (const auto& session : sessions_)
      course_.require(session->gpus().why_staged.empty() != what_.is_staged, "it has gone another way");
  }

 private:
  static Members members(int rank) { return {0, rank, {0, 1}}; }

  void send(bool may_give_up) {
    const Call call{CallKind::send, DataType::uint8, ReduceOp::sum, 0, -1, 1, 1, what_.bytes};
    const ConstRegion all{sent_.data(), what_.bytes, gpu(0)};
    RendezvousSend message(*sessions_[0], members(0), call, 5, {all, DataType::uint8}, runs(all), 3);
    finish(0, message, may_give_up);
    course_.give_back(sent_.data());
  }
  // The last is the first in memory.
  std::vector<ConstRegion> runs(const ConstRegion& all) const {
    const Bytes each = all.bytes / what_.runs;
    std::vector<ConstRegion> found;
    for (std::size_t run = 0; run < what_.runs; ++run)
      found.push_back(all.slice(((run + 1) % what_.runs) * each, each));
    return found;
  }
  void receive(bool may_give_up) {
    const Call call{CallKind::recv, DataType::uint8, ReduceOp::sum, 0, -1, 0, 1, what_.bytes};
    const Elements into({got_.data(), got_.size(), what_.into_host ? host(0) : gpu(1)}, DataType::uint8);
    if (what_.into_host) {
      Transfer message(*sessions_[1], call, 0, what_.bytes);
      message.receive(members(1), 5, got_.data(), into);
      finish(1, message, may_give_up);
    } else {
      GpuReceive message(*sessions_[1], members(1), call, 5, into);
      finish(1, message, may_give_up);
    }
    course_.give_back(got_.data());
  }

  // Advances until complete; or gives up, before any turn or when the other rank has given up, and waits until nobody
  // holds the memory.
  void finish(unsigned rank, Activity& message, bool may_give_up) {
    while (!message.advance()) {
      if (failed_ || (may_give_up && course_.choose(2, true) != 0)) {
        failed_ = true;
        course_.changed();
        message.abandon();
        break;
      }
      course_.idle();
    }
    let_go(rank);
  }
  // As in a session: a rank says that it touches no memory any more once its own GPUs touch none.
  void let_go(unsigned rank) {
    HeldMemory& held = sessions_[rank]->engine().held();
    const auto holds_nothing = [&](std::uint32_t) { return halted_[rank] && halted_[1 - rank]; };
    while (held.holder(holds_nothing) != nullptr) {
      if (!held.has_own() && !std::exchange(halted_[rank], true))
        course_.changed();
      else
        course_.idle();
    }
    halted_[rank] = true;
    course_.changed();
  }

  Course& course_;
  const GpuMessage what_;
  Network network_;
  Devices devices_;
  std::vector<std::unique_ptr<Session>> sessions_;
  std::vector<std::byte> sent_, got_, expected_;
  bool failed_ = false;
  bool halted_[2] = {};
};

const std::vector<std::pair<std::string, GpuMessage>> messages = {
    {"the receiver reads it", {}},
    {"the sender puts it there", {.reach = {.receiver_reads = false}}},
    {"the sender cannot share, and puts it there", {.reach = {.sender_shares = false}}},
    {"nobody opens: in pieces", {.reach = {.receiver_reads = false, .sender_opens = false}, .is_staged = true}},
    {"nobody shares: in pieces", {.reach = {.sender_shares = false, .receiver_shares = false}, .is_staged = true}},
    {"into a host: in pieces", {.into_host = true, .is_staged = true}},
    {"between machines: in pieces", {.reach = {.same_machine = false}, .is_staged = true}},
    {"runs from where they lie", {.bytes = 99, .runs = 3}},
    {"runs, gathered", {.reach = {.sender_opens = false}, .is_staged = true, .bytes = 99, .runs = 3}},
    {"three pieces", {.into_host = true, .is_staged = true, .bytes = (Bytes{2} << 20) + 100}},
};

TEST(ExploredRendezvous, EachWayBringsTheMessageOnceInAnyOrder) {
  for (const auto& [name, what] : messages)
    expect_no_problem("a message out of a GPU, " + name, [&](Course& course) { Exchange(course, what).go(false); },
                      {.deviations = what.bytes > 1000 ? 1u : 2u, .switches_cost = true});
}

TEST(ExploredRendezvous, NobodyTouchesMemoryThatWasGivenUp) {
  for (const auto& [name, what] : messages)
    if (what.bytes < 1000)
      expect_no_problem("a message out of a GPU that may be given up, " + name,
                        [&](Course& course) { Exchange(course, what).go(true); },
                        {.deviations = what.runs > 1 && !what.is_staged ? 3u : 2u, .switches_cost = true});
}

}  // namespace
}  // namespace waywiser::explorer
