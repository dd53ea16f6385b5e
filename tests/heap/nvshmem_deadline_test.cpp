// Calls of NVSHMEM's names that nobody answers end by the job's deadline, and all PEs hear PE, word and value, whether
// or not the process of the one that has waited is there any more.
#include <gtest/gtest.h>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/heap/nvshmem/nvshmem_process.hpp"

namespace waywiser {
namespace {

constexpr Seconds deadline = 0.3;

// What PE 1 hears when PE 0 makes `call`, with two words of symmetric memory. `opens`: the memory exists.
template <typename Call>
void expect_told(const std::string& words, bool opens, const Call& call, const char* end = "exit 1") {
  for (const bool on_gpus : {false, true}) {
    SCOPED_TRACE(on_gpus ? "virtual GPUs" : "hosts");
    TestRanks ranks(2);
    ranks.virtual_gpus = on_gpus ? 2 : 0;
    const auto run = [&](int rank) {
      nvshmem::NvshmemProcess& all = nvshmem::process();
      all.group.emplace(Group::join(ranks.options(rank)));
      all.job.emplace(*all.group, 4096);
      std::uint64_t* word = nullptr;
      if (opens) {
        nvshmem::job().open(on_gpus ? gpu(rank) : host(0));
        word = reinterpret_cast<std::uint64_t*>(nvshmem::job().allocate(2 * sizeof *word, 8, true));
      }
      if (rank == 0) {
        all.group->set_timeout(deadline);
        if (opens) const_cast<Heap&>(nvshmem::job().heap()).set_deadline(deadline);
        call(word);
      }
      const std::string why = error_of([&] { all.group->recv(std::span<int>(), 0); });
      require_that(why.find(words) != std::string::npos, why);
      std::_Exit(0);  // the objects of the process live until it ends
    };
    const TestRanks::Process first = ranks.start(0, run), second = ranks.start(1, run);
    EXPECT_EQ(TestRanks::wait(first), end);
    EXPECT_EQ(TestRanks::wait(second), "");
  }
}

TEST(NvshmemDeadline, OfAWordThatNobodyChanges) {
  constexpr int at_least = 3;  // NVSHMEM_CMP_GE
  expect_told(
      "rank 0: nvshmem_wait_until: rank 0, heap 'nvshmem': nobody changed the word at offset 8 within 300 ms: it is 0, "
      "and a "
      "kernel waits for >= 5",
      true, [](std::uint64_t* word) { nvshmem::wait_until(word + 1, at_least, 5, {}); });
}

TEST(NvshmemDeadline, OfABarrierInWhichAPeIsMissing) {
  expect_told(
      "rank 0: nvshmem_barrier: rank 0, heap 'nvshmem': rank 1 did not change a counter of a team within 300 ms: it is",
      true, [](std::uint64_t*) { nvshmem::barrier(NvshmemJob::world, {}); });
}

TEST(NvshmemDeadline, OfAReductionInWhichAPeIsMissing) {
  expect_told("rank 0: nvshmem_reduce: rank 0, heap 'nvshmem': rank 1 did not change ", true, [](std::uint64_t* word) {
    nvshmem::reduce(NvshmemJob::world, word, word, 1, DataType::uint64, one_sided::TeamOp::sum, {});
  });
}

TEST(NvshmemDeadline, OfCallsOfTheHost) {
  expect_told("rank 0: waited 300 ms in barrier #1", false,
              [](std::uint64_t*) { nvshmem::barrier(NvshmemJob::world, {}); });
  expect_told("rank 0: waited 300 ms in all_gather #", true, [](std::uint64_t* word) { nvshmem::release(word); });
}

TEST(NvshmemDeadline, OfAPeThatEndsTheJob) {
  expect_told("rank 0: nvshmem_global_exit(7)", false, [](std::uint64_t*) { nvshmem::global_exit(7); }, "exit 7");
}

}  // namespace
}  // namespace waywiser
