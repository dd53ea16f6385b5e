#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "tests/heap/heap_ranks.hpp"
#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using one_sided::TeamOp, one_sided::Scope;
using HostTeam = one_sided::Team<one_sided::HostHeapBlock>;

constexpr Bytes source_at = 0, gathered_at = 8192, turned_at = 16384, told_at = 24576, reduced_at = 32768;

// An element of a rank of the heap.
template <typename T>
T element(int rank, std::uint64_t i, int turn) {
  return static_cast<T>((static_cast<std::uint64_t>(rank) * 31 + i * 7 + static_cast<std::uint64_t>(turn) * 13) % 29 +
                        1);
}

template <typename T>
T reduced(TeamOp how, T a, T b) {
  switch (how) {
    case TeamOp::sum: return static_cast<T>(a + b);
    case TeamOp::product: return static_cast<T>(a * b);
    case TeamOp::minimum: return std::min(a, b);
    case TeamOp::maximum: return std::max(a, b);
    default: break;
  }
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(how == TeamOp::bit_and ? a & b : how == TeamOp::bit_or ? a | b : a ^ b);
  return a;
}

// All collectives of a team, twice without anything between; returns what is not as plain arrays say.
template <typename T>
std::string run_team(const Group& group, const Heap& heap, const HeapTeam& team, std::span<const int> members,
                     std::span<const TeamOp> ops) {
  std::string wrong;
  run_kernel(group, heap, [&](const HostOneSided& ranks) {
    const HostTeam kernels(ranks, team.terms());
    const auto parts = static_cast<std::uint64_t>(kernels.size());
    auto *source = ranks.at<T>(source_at), *gathered = ranks.at<T>(gathered_at), *turned = ranks.at<T>(turned_at);
    auto *told = ranks.at<T>(told_at), *sums = ranks.at<T>(reduced_at);
    const auto need = [&](bool condition, const char* what, std::uint64_t i) {
      if (!condition && wrong.empty()) wrong = what + (" " + std::to_string(i));
    };
    for (int turn = 0; turn < 2; ++turn) {
      const auto of = [&](int member, std::uint64_t i) {
        return element<T>(members[static_cast<std::size_t>(member)], i, turn);
      };
      const std::uint64_t count = turn == 0 ? 1 : 13;
      for (std::uint64_t i = 0; i < count * parts; ++i) source[i] = of(kernels.rank(), i);
      const int root = (turn + 1) % kernels.size();
      kernels.broadcast(told, source, count, root);
      kernels.all_gather(gathered, source, count);
      kernels.all_to_all(turned, source, count);
      for (std::uint64_t i = 0; i < count; ++i) need(told[i] == of(root, i), "broadcast", i);
      for (std::uint64_t i = 0; i < count * parts; ++i) {
        const auto from = static_cast<int>(i / count);
        need(gathered[i] == of(from, i % count), "all_gather", i);
        need(turned[i] == of(from, static_cast<std::uint64_t>(kernels.rank()) * count + i % count), "all_to_all", i);
      }
      for (const TeamOp how : ops) {
        kernels.reduce(sums, source, count, how);
        for (std::uint64_t i = 0; i < count; ++i) {
          T wanted = of(0, i);
          for (int member = 1; member < kernels.size(); ++member) wanted = reduced(how, wanted, of(member, i));
          need(sums[i] == wanted, "reduce", i);
        }
      }
      kernels.reduce(source, source, count, TeamOp::sum);
      for (std::uint64_t i = 0; i < count; ++i) {
        T wanted = of(0, i);
        for (int member = 1; member < kernels.size(); ++member) wanted = static_cast<T>(wanted + of(member, i));
        need(source[i] == wanted, "reduce in place", i);
      }
    }
  });
  return wrong;
}

constexpr TeamOp of_all_types[] = {TeamOp::sum, TeamOp::product, TeamOp::minimum, TeamOp::maximum};
constexpr TeamOp of_whole_numbers[] = {TeamOp::sum,     TeamOp::product, TeamOp::minimum, TeamOp::maximum,
                                       TeamOp::bit_and, TeamOp::bit_or,  TeamOp::bit_xor};

void check_team(const Group& group, const Heap& heap, const HeapTeam& team, const std::vector<int>& members) {
  require_that(std::equal(members.begin(), members.end(), team.terms().members, team.terms().members + team.size()),
               "the members");
  require_that(members[static_cast<std::size_t>(team.rank())] == group.rank(), "this rank");
  for (const std::string& wrong : {run_team<std::uint64_t>(group, heap, team, members, of_whole_numbers),
                                   run_team<std::int8_t>(group, heap, team, members, of_whole_numbers),
                                   run_team<std::uint16_t>(group, heap, team, members, of_whole_numbers),
                                   run_team<double>(group, heap, team, members, of_all_types)})
    require_that(wrong.empty(), wrong);
}

TEST(HeapTeam, CollectivesAreAsPlainArraysSay) {
  for (const int size : {1, 2, 3, 5, 8})
    EXPECT_EQ(problems_of(size,
                          [](Group& group, Place place) {
                            Heap heap(group, "world", place, 65536);
                            std::vector<int> all(static_cast<std::size_t>(group.size()));
                            std::iota(all.begin(), all.end(), 0);
                            check_team(group, heap, heap.world(), all);
                          }),
              "")
        << size;
}

// `turns` broadcasts by turns of all roots, around what fits into packets, from any address; returns what is wrong.
std::string run_broadcasts(const Group& group, const Heap& heap, const HeapTeam& team, int first, int turns) {
  std::string wrong;
  run_kernel(group, heap, [&](const HostOneSided& ranks) {
    const HostTeam kernels(ranks, team.terms());
    constexpr std::uint64_t most = one_sided::team_packet_bytes;
    constexpr std::uint64_t sizes[] = {0, 1, 7, 8, 40, most - 8, most - 1, most, most + 1, most + 8, 2 * most - 16};
    for (int turn = first; turn < first + turns; ++turn) {
      const std::uint64_t count = sizes[static_cast<std::size_t>(turn) % std::size(sizes)];
      const int root = turn % kernels.size();
      auto* source = ranks.at<std::uint8_t>(source_at + static_cast<std::uint64_t>(turn / 2 % 5));
      auto* told = turn % 7 == 0 ? source : ranks.at<std::uint8_t>(gathered_at + static_cast<std::uint64_t>(turn % 3));
      for (std::uint64_t i = 0; i < count; ++i) source[i] = element<std::uint8_t>(kernels.rank(), i, turn);
      kernels.broadcast(told, source, count, root);
      for (std::uint64_t i = 0; i < count && wrong.empty(); ++i)
        if (told[i] != element<std::uint8_t>(root, i, turn))
          wrong = "turn " + std::to_string(turn) + ", byte " + std::to_string(i);
    }
  });
  return wrong;
}

TEST(HeapTeam, BroadcastsAroundWhatFitsIntoPackets) {
  for (const int size : {1, 2, 5})
    EXPECT_EQ(problems_of(size,
                          [](Group& group, Place place) {
                            Heap heap(group, "packets", place, 65536);
                            const HeapTeam team = heap.world();
                            const std::string wrong = run_broadcasts(group, heap, team, 0, 77);
                            require_that(wrong.empty(), wrong);
                          }),
              "")
        << size;
}

// Its numbers begin again, so packets of the team before would be taken for its own.
TEST(HeapTeam, FindsNoPacketsOfATeamThatHadItsPlace) {
  EXPECT_EQ(problems_of(3,
                        [](Group& group, Place place) {
                          Heap heap(group, "again", place, 65536);
                          for (int first = 0; first < 44; first += 4) {
                            const HeapTeam team = heap.world();
                            require_that(team.terms().slot == 0, "another place");
                            const std::string wrong = run_broadcasts(group, heap, team, first, 11);
                            require_that(wrong.empty(), wrong);
                          }
                        }),
            "");
}

// 16-bit floats are summed as 32-bit ones, in the order of the ranks, and rounded once.
TEST(HeapTeam, HalvesAreRoundedOnce) {
  EXPECT_EQ(problems_of(3,
                        [](Group& group, Place place) {
                          Heap heap(group, "halves", place, 4096);
                          const HeapTeam team = heap.world();
                          std::string wrong;
                          run_kernel(group, heap, [&](const HostOneSided& ranks) {
                            auto *halves = ranks.at<Float16>(0), *sums = ranks.at<Float16>(1024);
                            halves[0] = to_float16(group.rank() == 0 ? 2048.0f : 1.0f);  // 2049 is no half
                            one_sided::Team<one_sided::HostHeapBlock, Scope::warp>(ranks, team.terms())
                                .reduce(sums, halves, 1, TeamOp::sum);
                            if (to_float(sums[0]) != 2050.0f) wrong = std::to_string(to_float(sums[0]));
                          });
                          require_that(wrong.empty(), wrong);
                        }),
            "");
}

// Teams of the same ranks at once; the slots of teams that are gone are taken again.
TEST(HeapTeam, SplitsHaveTheRanksThatTheySay) {
  EXPECT_EQ(problems_of(6,
                        [](Group& group, Place place) {
                          Heap heap(group, "teams", place, 65536);
                          const int rank = group.rank();
                          for (int turn = 0; turn < 2; ++turn) {
                            const auto [row, column] = heap.split_2d(3);
                            check_team(group, heap, row, {rank / 3 * 3, rank / 3 * 3 + 1, rank / 3 * 3 + 2});
                            check_team(group, heap, column, {rank % 3, rank % 3 + 3});
                            const auto odd = heap.split_strided(1, 2, 3), backwards = heap.split_strided(5, -1, 4);
                            require_that(odd.has_value() == (rank % 2 == 1) && backwards.has_value() == (rank >= 2),
                                         "who is in a team");
                            if (odd) check_team(group, heap, *odd, {1, 3, 5});
                            if (backwards) check_team(group, heap, *backwards, {5, 4, 3, 2});
                            const auto turned = heap.split(rank % 2, -rank);
                            check_team(group, heap, *turned, {rank % 2 + 4, rank % 2 + 2, rank % 2});
                          }
                          EXPECT_THROW(heap.split_strided(1, 2, 4), Error);
                          EXPECT_THROW(heap.split_strided(0, 0, 1), Error);
                          EXPECT_THROW(heap.split_2d(0), Error);
                          group.barrier();
                          std::vector<HeapTeam> many;
                          for (int i = 0; i < 64; ++i) many.push_back(heap.world());
                          EXPECT_THROW(static_cast<void>(heap.world()), Error);
                          many.pop_back();
                          check_team(group, heap, heap.world(), {0, 1, 2, 3, 4, 5});
                        }),
            "");
}

// A member that does not come is named.
TEST(HeapTeam, ABarrierWithoutAMemberEndsAtTheDeadline) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  const auto problems = ranks.in_processes([](Group& group) {
    Heap heap(group, "barrier", gpu(group.rank()), 64);
    heap.set_deadline(0.05);
    const HeapTeam team = heap.world();
    if (group.rank() == 0)
      run_kernel(group, heap, [&](const HostOneSided& part) { HostTeam(part, team.terms()).barrier(); });
  });
  EXPECT_NE(problems[0].find("rank 0, heap 'barrier': rank 1 did not change a counter of a team within 50.0 ms: it is "
                             "0, and a kernel waits for >= 1"),
            std::string::npos)
      << problems[0];
}

}  // namespace
}  // namespace waywiser
