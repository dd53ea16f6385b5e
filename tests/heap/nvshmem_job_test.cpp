#include "waywiser/heap/nvshmem/nvshmem_job.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/base/error_of.hpp"
#include "tests/heap/heap_ranks.hpp"

namespace waywiser {
namespace {

void refused(const std::function<void()>& call, const std::string& text) {
  const std::string said = error_of(call);
  require_that(said.find(text) != std::string::npos, said);
}

TEST(FreeList, GivesTheFirstPlaceThatIsLargeEnough) {
  FreeList list(1000);
  EXPECT_EQ(list.take(100, 1), 0u);
  EXPECT_EQ(list.take(100, 256), 256u);
  EXPECT_EQ(list.take(156, 1), 100u);
  EXPECT_EQ(list.take(645, 1), std::nullopt);
  EXPECT_EQ(list.take(644, 1), 356u);
  EXPECT_EQ(list.take(1, 1), std::nullopt);
  EXPECT_TRUE(list.give_back(256));
  EXPECT_FALSE(list.give_back(256));
  EXPECT_FALSE(list.give_back(101));
  EXPECT_EQ(list.take(101, 1), std::nullopt);
  EXPECT_EQ(list.take(50, 64), 256u);
  EXPECT_EQ(list.take(Bytes{1} << 63, Bytes{1} << 62), std::nullopt);
}

TEST(NvshmemJob, HeapsHaveWholeGranules) {
  const Bytes granule = Bytes{512} << 20;
  EXPECT_EQ(NvshmemJob::in_granules(0), 0U);
  EXPECT_EQ(NvshmemJob::in_granules(1), granule);
  EXPECT_EQ(NvshmemJob::in_granules(2 * granule), 2 * granule);
  EXPECT_EQ(NvshmemJob::in_granules(2 * granule + 1), 3 * granule);
  EXPECT_EQ(NvshmemJob::in_granules(~Bytes{0}), ~Bytes{0});  // is refused later
}

TEST(NvshmemJob, AllocatesTheSamePlacesAtAllRanks) {
  EXPECT_EQ(problems_of(3,
                        [](Group& group, Place place) {
                          NvshmemJob job(group, 4096);
                          refused([&] { static_cast<void>(job.heap()); }, "there is no symmetric memory yet");
                          job.open(place);
                          job.open(place);
                          refused([&] { job.open(place.is_gpu() ? gpu(7) : host(1)); }, "is the present device");
                          std::byte* first = job.allocate(100, 1, true);
                          std::byte* second = job.allocate(1000, 512, false);
                          require_that(job.offset(first, 100) == 0 && job.offset(second, 1000) == 512, "offsets");
                          require_that(job.allocate(4000, 1, false) == nullptr, "no room");
                          require_that(job.allocate(0, 1, false) == nullptr, "no bytes");
                          refused([&] { job.allocate(8, 3, false); }, "a power of two, not 3");
                          refused([&] { job.release(first + 8); }, "nothing is allocated at offset 8");
                          refused([&] { static_cast<void>(job.offset(first, 5000)); }, "not in the symmetric memory");
                          refused([&] { job.allocate(group.rank() == 2 ? 16 : 8, 1, false); },
                                  "PE 2 gives 16 and 1, PE 0 8 and 1");
                          job.release(first);
                          job.release(nullptr);
                          require_that(job.allocate(200, 1, false) == first, "the place is taken again");

                          // Words to the right, and what is there back.
                          const int right = (group.rank() + 1) % 3, left = (group.rank() + 2) % 3;
                          const std::uint64_t word = 100 + static_cast<std::uint64_t>(group.rank());
                          job.put(second, &word, sizeof word, right);
                          group.barrier();
                          std::uint64_t found = 0, there = 0;
                          job.get(&found, second, sizeof found, group.rank());
                          job.get(&there, second, sizeof there, right);
                          require_that(found == 100 + static_cast<std::uint64_t>(left), "the word of the left one");
                          require_that(there == word, "the word at the right one");
                          require_that(job.pointer(second, group.rank()) == second, "own memory");
                          require_that(job.pointer(second, right) != nullptr, "memory of the right one");
                          require_that(job.pointer(second, 3) == nullptr && job.pointer(second + 8192, 0) == nullptr,
                                       "no memory");
                          group.barrier();
                        }),
            "");
}

TEST(NvshmemJob, TeamsHaveHandles) {
  EXPECT_EQ(
      problems_of(4,
                  [](Group& group, Place place) {
                    NvshmemJob job(group, 4096);
                    const int rank = group.rank();
                    require_that(job.rank_in(NvshmemJob::node) == rank && job.size_of(NvshmemJob::node) == 4,
                                 "the node, which tells a program its GPU, before there is memory");
                    job.open(place);
                    const int odd = job.split_strided(NvshmemJob::world, 1, 2, 2);
                    require_that((odd == NvshmemJob::no_team) == (rank % 2 == 0), "odd PEs are members");
                    int row = -1, column = -1;
                    job.split_2d(NvshmemJob::shared, 2, row, column);
                    require_that(job.rank_in(row) == rank % 2 && job.rank_in(column) == rank / 2, "rows, columns");
                    require_that(job.translate(row, 1, NvshmemJob::world) == rank / 2 * 2 + 1, "of all PEs");
                    require_that(job.translate(row, 2, NvshmemJob::world) == -1, "there is no PE 2 of two");
                    require_that(job.size_of(99) == -1 && job.rank_in(-1) == -1, "no such team");
                    const NvshmemTerms terms = job.terms();
                    require_that(terms.teams[0].size == 4 && terms.teams[row].size == 2, "what kernels see");
                    refused([&] { job.split_strided(row, 0, 1, 1); }, "only teams of all 4 PEs can be");
                    refused([&] { job.destroy(NvshmemJob::world); }, "team 0 is predefined");
                    refused([&] { job.destroy(31); }, "there is no team 31");
                    job.destroy(row);
                    require_that(job.size_of(row) == -1, "it is gone");
                    require_that(job.terms().teams[row].size == 0, "for kernels, too");
                    group.barrier();
                    require_that(job.split_strided(NvshmemJob::world, 0, 1, 4) == row, "its handle is taken again");
                    group.barrier();
                  }),
      "");
}

}  // namespace
}  // namespace waywiser
