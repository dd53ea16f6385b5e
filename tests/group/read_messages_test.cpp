// Messages of GPUs that the receiver reads where they are.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tests/comm/different.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/group/twins.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

// Counts the memory of other processes that it opens, or refuses to share its own.
class Opening : public Different {
 public:
  // `why`: the reason why it shares nothing; empty: it shares.
  explicit Opening(const VirtualMachine& machine, std::string why = "") : Different(machine), why_(std::move(why)) {}
  SharedRegion share(ConstRegion region) override {
    if (!why_.empty()) throw Error(ErrorKind::unavailable, why_);
    return Different::share(region);
  }
  Memory open_shared(const SharedRegion& shared, Place user) override {
    ++opened;
    return Different::open_shared(shared, user);
  }
  int opened = 0;

 private:
  std::string why_;
};

// From rank 0 to rank 1, without a stream; how often each has opened the other's memory.
void message_without_stream(Group& group, std::size_t count, Bytes offset, int opened_by_sender,
                            int opened_by_receiver) {
  auto& platform = dynamic_cast<Opening&>(*group.platform());
  platform.opened = 0;
  Twins array(group, DataType::float32, count, group.rank(), offset);
  group.barrier();  // the memory is still there when it is read
  if (group.rank() == 0) {
    group.send(array.gpu_elements(), 1);
    group.send(array.host_elements(), 1, 1);
  } else {
    group.recv(array.gpu_elements(), 0);
    group.recv(array.host_elements(), 0, 1);
  }
  require_that(array.equal(), std::to_string(count) + " elements");
  const int expected = group.rank() == 0 ? opened_by_sender : opened_by_receiver;
  require_that(platform.opened == expected, std::to_string(platform.opened) + " opened for " + std::to_string(count));
  group.barrier();
}

TEST(GroupOnGpus, TheReceiverReadsMessagesOfUpToAMebibyteWhereTheyAre) {
  VirtualMachine machine;
  machine.gpus = 2;
  EXPECT_EQ(on_platforms(
                2, [&](int) { return std::make_shared<Opening>(machine); },
                [](Group& group) {
                  message_without_stream(group, 1, 4, 0, 1);
                  message_without_stream(group, 2048, 16, 0, 1);
                  message_without_stream(group, 2049, 16, 0, 1);
                  message_without_stream(group, 5000, 4, 0, 1);
                  message_without_stream(group, 1 << 18, 16, 0, 1);
                  message_without_stream(group, (1 << 18) + 1, 16, 1, 0);
                }),
            no_problems);
}

std::shared_ptr<const Chooser> plan_for_messages(const Path& path, const std::optional<Path>& reading = {}) {
  Plan plan;
  std::vector<Path> paths{path};
  if (reading) paths.push_back(*reading);
  plan.rows = {made_up::message_row(paths, 0, 1 << 30, Operation::latency, {{gpu(1), gpu(0)}})};
  return std::make_shared<const Chooser>(std::move(plan));
}

TEST(GroupOnGpus, TheReceiverReadsWhereThePlanHasAKernelThatReads) {
  VirtualMachine machine;
  machine.gpus = 2;
  const auto opening = [&](int) { return std::make_shared<Opening>(machine); };
  const auto kernel = [](const char* direction) {
    return Path{"sm_copy", gpu(0), gpu(1), 2, {{"direction", direction}, {"blocks", "4"}, {"handle", "cuda_ipc"}}};
  };
  const Path engine{"copy_engine", gpu(0), gpu(1), 2, {{"handle", "cuda_ipc"}}};
  const auto problems_if = [&](bool receiver_reads, const std::shared_ptr<const Chooser>& plan) {
    const auto message = [receiver_reads](Group& group) {
      message_without_stream(group, 5000, 16, receiver_reads ? 0 : 1, receiver_reads ? 1 : 0);
    };
    return on_platforms(2, opening, message, plan);
  };
  EXPECT_EQ(problems_if(true, plan_for_messages(kernel("push"), kernel("pull"))), no_problems);
  EXPECT_EQ(problems_if(true, plan_for_messages(kernel("pull"))), no_problems);
  EXPECT_EQ(problems_if(false, plan_for_messages(kernel("push"))), no_problems);
  EXPECT_EQ(problems_if(false, plan_for_messages(engine, kernel("pull"))), no_problems);
  EXPECT_EQ(problems_if(false, plan_for_messages(engine)), no_problems);
}

TEST(GroupOnGpus, ASenderThatCannotShareItsMemoryPutsItItself) {
  VirtualMachine machine;
  machine.gpus = 2;
  EXPECT_EQ(on_platforms(
                2, [&](int rank) { return std::make_shared<Opening>(machine, rank == 1 ? "" : "nothing is shared"); },
                [](Group& group) { message_without_stream(group, 5000, 16, 1, 0); }),
            no_problems);
  EXPECT_EQ(
      on_platforms(
          2,
          [&](int rank) { return std::make_shared<Opening>(machine, "rank " + std::to_string(rank) + " keeps all"); },
          [](Group& group) {
            message_without_stream(group, 5000, 16, 0, 0);
            const std::string why = group.why_staged(1 - group.rank());
            require_that(why == "rank 1 keeps all; the sender cannot share it: rank 0 keeps all", why);
          }),
      no_problems);
}

}  // namespace
}  // namespace waywiser
