// What calls on GPUs refuse, and what they say of a rank that does not come.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/twins.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// The received data would overwrite data that are still being sent.
void refuse_arrays_that_overlap(Group& group) {
  const auto stream = group.platform()->open_stream(gpu_of_rank(group));
  const std::size_t mine = static_cast<std::size_t>(group.rank()), ranks = static_cast<std::size_t>(group.size());
  Twins all(group, DataType::int32, 100 * ranks, group.rank());
  const Elements whole = all.gpu_elements();
  const int other = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  const auto refused = [&](const std::string& what, const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      require_that(error.kind() == ErrorKind::invalid_input && std::string(error.what()).find("overlap") < 1000, what);
      return;
    }
    require_that(false, "a refusal of " + what);
  };
  group.barrier(Mode::on(*stream));
  for (const int peer : {group.rank(), other}) {
    const int from = peer == other ? before : peer;
    refused("sendrecv of one array", [&] { group.sendrecv(whole, peer, whole, from, 0, Mode::on(*stream)); });
    refused("sendrecv within an array",
            [&] { group.sendrecv(whole.slice(0, 60), peer, whole.slice(40, 60), from, 0, Mode::on(*stream)); });
  }
  refused("neighbor_exchange", [&] {
    const Exchange both[] = {{other, whole.slice(0, 60), whole.slice(40, 60)}};
    group.neighbor_exchange(both, Mode::on(*stream));
  });
  const std::vector<std::size_t> counts(ranks, 100);
  refused("all_gather_v", [&] { group.all_gather_v(whole.slice(50, 100), whole, counts, Mode::on(*stream)); });
  group.all_gather_v(whole.slice(100 * mine, 100), whole, counts, Mode::on(*stream));
  group.synchronize(*stream);
  group.all_gather_v(all.host_elements().slice(100 * mine, 100), all.host_elements(), counts);
  require_that(all.equal(), "all_gather_v in place as on the host");
}

TEST(GroupOnGpus, ArraysThatOverlapAreRefused) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes(refuse_arrays_that_overlap), no_problems);
}

TEST(GroupOnGpus, ARankThatDoesNotComeIsNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    Twins sum(group, DataType::int32, 100, 0);
    group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
    if (group.rank() == 0) group.set_timeout(1);
    if (group.rank() == 1) {
      group.recv(std::span<int>(), 0);  // never sent
      return;
    }
    group.all_reduce(sum.gpu_elements(), sum.gpu_elements());
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("rank 1 did not send"), std::string::npos) << problems[0] << problems[1];
}

TEST(GroupOnGpus, UnlikeCallsAreNamed) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    Twins sum(group, DataType::int32, 100, 0), longer(group, DataType::int32, 3000, 0);
    group.barrier(Mode::on(*group.platform()->open_stream(gpu_of_rank(group))));
    if (group.rank() == 0) {
      group.set_timeout(1);  // the first to give up
      group.broadcast(sum.gpu_elements(), 1);
    }
    if (group.rank() == 1) group.recv(std::span<int>(), 0);
    group.all_reduce(longer.gpu_elements(), longer.gpu_elements());
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE((problems[0] + problems[1]).find("broadcast"), std::string::npos) << problems[0] << problems[1];
}

TEST(GroupOnGpus, AnArrayOfTheHostOnAStreamIsRefused) {
  TestRanks ranks(1);
  ranks.virtual_gpus = 1;
  const std::vector<std::string> problems = ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu(0));
    Twins in(group, DataType::int32, 10, 0), out(group, DataType::int32, 10, 1);
    group.gather(in.gpu_elements(), out.host_elements(), 0, Mode::on(*stream));
  });
  EXPECT_NE(problems[0].find("an array of the host on a GPU's stream"), std::string::npos) << problems[0];
}

// If a collective is refused at one rank only, it does not count as a call there.
TEST(GroupOnGpus, RanksAreInStepAfterACallThatOneWasRefused) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    Twins in(group, DataType::int32, 10, 0), out(group, DataType::int32, 20, 1);
    group.barrier(Mode::on(*stream));
    if (group.rank() == 0) {
      std::string refused;
      try {
        group.gather(in.gpu_elements(), out.host_elements(), 0, Mode::on(*stream));
      } catch (const Error& error) {
        refused = error.what();
      }
      require_that(refused.find("an array of the host") != std::string::npos, "a refusal: " + refused);
    }
    group.all_reduce(in.host_elements(), in.host_elements());
    group.gather(in.host_elements(), out.host_elements(), 0);
  }),
            no_problems);
}

TEST(GroupOnGpus, AMessageOnAStreamThatNobodySendsIsAnError) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    const auto stream = group.platform()->open_stream(gpu_of_rank(group));
    Twins taken(group, DataType::int32, 10, 0);
    group.barrier(Mode::on(*stream));
    if (group.rank() == 0) group.set_timeout(1);
    if (group.rank() == 0) group.recv(taken.gpu_elements(), 1, 0, Mode::on(*stream));
    group.synchronize(*stream);
    group.barrier();
  });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("rank 1 did not send within 1.00 s in a message of 10 int32"), std::string::npos)
      << problems[0];
}

// Kernels number the ranks of their part of a group, and a part of the job numbers its ranks: people want the job's.
TEST(GroupOnGpus, AStreamsErrorNamesRanksOfTheJob) {
  for (const bool machines : {false, true})
    for (const bool collective : {false, true}) {
      TestRanks ranks(4);
      ranks.virtual_gpus = 4;
      ranks.machines_apart = machines;
      ranks.ranks_of_machine = 2;
      const auto problems = ranks.in_processes([&](Group& group) {
        const auto stream = group.platform()->open_stream(gpu_of_rank(group));
        Twins given(group, DataType::int32, 10, 0), taken(group, DataType::int32, 10, 0);
        auto upper = group.split(group.rank() / 2);
        Group& used = machines && !collective ? group : *upper;
        const int other = &used == &group ? 3 : 1;
        upper->barrier(Mode::on(*stream));
        group.barrier(Mode::on(*stream));
        if (group.rank() == 2) group.set_timeout(1);
        if (group.rank() == 2 && collective)
          used.all_reduce(given.gpu_elements(), taken.gpu_elements(), ReduceOp::sum, Mode::on(*stream));
        if (group.rank() == 2 && !collective) used.recv(taken.gpu_elements(), other, 0, Mode::on(*stream));
        used.synchronize(*stream);
        group.barrier();
      });
      ASSERT_EQ(problems.size(), 4u);
      EXPECT_NE(problems[2].find("rank 2: rank 3 did not send within 1.00 s in "), std::string::npos) << problems[2];
    }
}

}  // namespace
}  // namespace waywiser
