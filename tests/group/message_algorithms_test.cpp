// Which protocol carries messages between virtual GPUs on streams and in prepared exchanges, and in how many blocks.
#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"
#include "waywiser/group/prepared.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {
namespace {

constexpr Seconds message_time = 20;

std::vector<std::uint8_t> bytes_of_rank(int rank, Bytes bytes) {
  std::vector<std::uint8_t> values(bytes);
  for (Bytes i = 0; i < bytes; ++i) values[i] = static_cast<std::uint8_t>(i * 7 + i / 251 + 31u * (rank + 1u));
  return values;
}

// Round the ring, both ways at once.
void shift_on_stream(Group& group, Bytes bytes) {
  Platform& platform = *group.platform();
  const Place mine = gpu(group.rank() % platform.gpu_count());
  const auto stream = platform.open_stream(mine);
  const Memory give = platform.allocate(mine, bytes, Allocation::gpu),
               take = platform.allocate(mine, bytes, Allocation::gpu);
  const Memory staging = platform.allocate(host(0), bytes, Allocation::pinned);
  const auto sent = bytes_of_rank(group.rank(), bytes);
  std::memcpy(staging.region().data, sent.data(), bytes);
  stream->copy(give.region().slice(0, bytes), staging.region().slice(0, bytes));
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  group.barrier(Mode::on(*stream));
  group.sendrecv({give.region().slice(0, bytes), DataType::uint8}, next,
                 {take.region().slice(0, bytes), DataType::uint8}, before, 0, Mode::on(*stream));
  stream->copy(staging.region().slice(0, bytes), take.region().slice(0, bytes));
  group.synchronize(*stream);
  const auto wanted = bytes_of_rank(before, bytes);
  if (std::memcmp(staging.region().data, wanted.data(), bytes) != 0)
    throw Error(ErrorKind::corrupt, "a message of " + std::to_string(bytes) + " bytes");
}

std::function<std::shared_ptr<Platform>(int)> virtual_gpus(int gpus, int multiprocessors) {
  return [=](int) {
    VirtualMachine machine;
    machine.gpus = gpus;
    machine.multiprocessors = multiprocessors;
    return open_virtual_platform(machine);
  };
}

std::shared_ptr<const Chooser> plan_of(const std::string& operation, const std::string& algorithm) {
  Plan plan;
  plan.rows = {made_up::group_row(operation, "gpu", 2, 0, no_end, algorithm)};
  return std::make_shared<const Chooser>(std::move(plan));
}

const std::vector<std::string> no_problem;

void expect_refused(const std::vector<std::string>& problems, const std::string& why) {
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems) EXPECT_NE(problem.find(why), std::string::npos) << problem;
}

TEST(MessageAlgorithmsOfGroups, AllCarryAllSizes) {
  for (const int ranks : {2, 3})
    EXPECT_EQ(on_platforms(ranks, virtual_gpus(ranks, 132),
                           [](Group& group) {
                             for (const char* name :
                                  {"LL", "LL128", "bulk", "LL(blocks=3)", "LL128(blocks=5)", "bulk(blocks=2)", ""}) {
                               group.set_algorithm(name);
                               for (const Bytes bytes : {1, 4097, 300001}) shift_on_stream(group, bytes);
                             }
                           }),
              no_problem);
}

TEST(MessageAlgorithmsOfGroups, ThePlansOneRuns) {
  const auto by = [](const std::string& algorithm) {
    return on_platforms(
        2, virtual_gpus(2, 132), [](Group& group) { shift_on_stream(group, 5000); }, plan_of("message", algorithm));
  };
  EXPECT_EQ(by("bulk(blocks=7)"), no_problem);
  expect_refused(by("by pigeon"), "plan: message of gpu arrays has no way 'by pigeon'");
  const auto problems = by("LL(blocks=100)");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("LL(blocks=100)"), std::string::npos) << problems[0];
}

// As many channels as ever, in as many blocks as each GPU has room for: 14 as the smallest slice of an A100.
TEST(MessageAlgorithmsOfGroups, FewMultiprocessorsCarryThemAll) {
  const auto unlike = [](int rank) { return virtual_gpus(3, rank == 0 ? 14 : rank == 1 ? 108 : 132)(rank); };
  EXPECT_EQ(on_platforms(3, unlike,
                         [](Group& group) {
                           for (const char* name : {"", "LL", "LL128", "bulk"}) {
                             group.set_algorithm(name);
                             for (const Bytes bytes : {8, 70000, 3000001}) shift_on_stream(group, bytes);
                           }
                         }),
            no_problem);
}

TEST(MessageAlgorithmsOfGroups, MoreMessagesThanMultiprocessorsAreRefused) {
  const auto problems = on_platforms(2, virtual_gpus(2, 1), [](Group& group) { shift_on_stream(group, 5000); });
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("2 messages in one kernel: the GPU has 1 multiprocessors"), std::string::npos)
      << problems[0];
}

// A ring of which each rank gives `bytes` to the next. Returns what explains it.
std::string shift_prepared(Group& group, Bytes bytes) {
  Platform& platform = *group.platform();
  const Place mine = gpu(group.rank() % platform.gpu_count());
  const auto stream = platform.open_stream(mine);
  const Memory give = platform.allocate(mine, bytes, Allocation::gpu),
               take = platform.allocate(mine, bytes, Allocation::gpu);
  const Memory staging = platform.allocate(host(0), bytes, Allocation::pinned);
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  const Elements given{give.region().slice(0, bytes), DataType::uint8},
      taken{take.region().slice(0, bytes), DataType::uint8}, nothing{{}, DataType::uint8};
  Prepared prepared =
      group.prepare_exchange(std::vector<Exchange>{{next, given, nothing, 0, 0}, {before, nothing, taken, 0, 0}});
  for (int start = 0; start < 3; ++start) {
    const auto sent = bytes_of_rank(group.rank() + 10 * start, bytes);
    std::memcpy(staging.region().data, sent.data(), bytes);
    stream->copy(give.region().slice(0, bytes), staging.region().slice(0, bytes));
    prepared.start(*stream);
    stream->copy(staging.region().slice(0, bytes), take.region().slice(0, bytes));
    group.synchronize(*stream);
    const auto wanted = bytes_of_rank(before + 10 * start, bytes);
    require_that(std::memcmp(staging.region().data, wanted.data(), bytes) == 0,
                 prepared.explain() + ": " + std::to_string(bytes) + " bytes, start " + std::to_string(start));
  }
  group.barrier();
  return prepared.explain();
}

// Whether the explanation has `wanted`.
void require_explained(const std::string& explained, const std::string& wanted) {
  require_that(explained.find(wanted) != std::string::npos, explained + " instead of " + wanted);
}

// What follows the name of an algorithm without parameters: those whose ends must agree on pieces name them.
std::string end_of(std::string_view name) {
  if (name.empty()) return "";
  return name.starts_with("LL") ? ";" : "(piece=";
}

TEST(ProgramAlgorithmsOfGroups, AllCarryAllSizes) {
  EXPECT_EQ(on_platforms(3, virtual_gpus(3, 132),
                         [](Group& group) {
                           for (const char* name :
                                {"LL", "LL128", "bulk", "direct", "LL(piece=512)", "LL128(piece=1K,blocks=9)",
                                 "bulk(piece=1K,blocks=3)", "direct(piece=4K,blocks=64)", ""}) {
                             group.set_algorithm(name);
                             for (const Bytes bytes : {1, 4097, 300001}) {
                               const std::string explained = shift_prepared(group, bytes);
                               if (std::strchr(name, '=') == nullptr)
                                 require_explained(explained + ";", "takes 1 by " + std::string(name) + end_of(name));
                             }
                           }
                         }),
            no_problem);
}

// Kernels that wait for each other, but find no room beside each other, would wait forever.
TEST(ProgramAlgorithmsOfGroups, RanksThatShareAGpuShareItsMultiprocessors) {
  for (const auto& [gpus, blocks] : {std::pair(2, "128"), std::pair(1, "66")}) {
    TestRanks ranks(2);
    ranks.platform_of = virtual_gpus(gpus, 132);
    ranks.kernels_on_shared_gpu = true;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      require_explained(shift_prepared(group, 8 << 20), "one kernel of " + std::string(blocks) + " blocks");
    }),
              no_problems);
  }
}

TEST(ProgramAlgorithmsOfGroups, ThePlansOneRuns) {
  const auto by = [](const std::string& algorithm, const std::string& explained) {
    return on_platforms(
        2, virtual_gpus(2, 132), [&](Group& group) { require_explained(shift_prepared(group, 5000), explained); },
        plan_of("prepared_exchange", algorithm));
  };
  EXPECT_EQ(by("direct(piece=1K,blocks=2)",
               "one kernel of 2 blocks; gives 1 by direct(piece=1K); takes 1 by direct(piece=1K)"),
            no_problem);
  expect_refused(by("by pigeon", ""), "plan: prepared_exchange of gpu arrays has no way 'by pigeon'");
  const auto problems = by("LL(blocks=300)", "");
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("a message of a schedule by LL(blocks=300): it has 256 blocks at most"), std::string::npos)
      << problems[0];
}

TEST(ProgramAlgorithmsOfGroups, RanksThatSetOtherOnesAreTold) {
  const auto problems = on_platforms(2, virtual_gpus(2, 132), [](Group& group) {
    group.set_algorithm(group.rank() == 0 ? "bulk" : "direct(piece=1K)");
    shift_prepared(group, 5000);
  });
  ASSERT_EQ(problems.size(), 2u);
  for (const std::string& problem : problems)
    EXPECT_NE(problem.find("by other algorithms than it takes them by"), std::string::npos) << problem;
}

}  // namespace
}  // namespace waywiser
