#include "waywiser/measure/seats.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace waywiser {
namespace {

std::pair<int, int> chosen(const SeatChoices& choices) {
  const Seats seats = choose_seats(choices);
  return {seats.source, seats.destination};
}

TEST(Seats, AreOnDifferentCores) {
  EXPECT_EQ(chosen({{0, 1}, {0, 1}, {}}), std::pair(0, 1));
  EXPECT_EQ(chosen({{0, 1, 2, 3}, {0, 1, 2, 3}, {{0, 1}, {2, 3}}}), std::pair(0, 2));
  EXPECT_EQ(chosen({{4, 5}, {0, 1}, {}}), std::pair(4, 0));
}

TEST(Seats, ShareACoreOrNothingWhenThereIsNoOther) {
  EXPECT_EQ(chosen({{0, 1}, {0, 1}, {{0, 1}}}), std::pair(0, 1));
  EXPECT_EQ(chosen({{3}, {3}, {}}), std::pair(-1, -1));
  EXPECT_EQ(chosen({}), std::pair(-1, -1));
}

TEST(Seats, OfSeveralPairsAreAllDifferentOrNone) {
  const SeatChoices any{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}};
  const auto cpus = [](const std::vector<SeatChoices>& pairs) {
    std::vector<int> found;
    for (const Seats& seats : choose_seats(pairs)) found.insert(found.end(), {seats.source, seats.destination});
    return found;
  };
  EXPECT_EQ(cpus({any, any}), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(cpus({any, any, any}), (std::vector{0, 1, 2, 3, 4, 5}));  // cores are shared: three pairs need six CPUs
  EXPECT_EQ(cpus({any, any, any, any, any}), std::vector(10, -1));
  EXPECT_EQ(cpus({{{0, 1}, {2, 3}, {}}, {{2, 3}, {0, 1}, {}}}), (std::vector{0, 2, 3, 1}));
}

TEST(Seats, AreTakenAndGivenBack) {
  const SeatChoices here = seat_choices({"host_copy", host(0), host(0), 2, {}});
  ASSERT_FALSE(here.near_source.empty());
  cpu_set_t before, inside, after;
  ::sched_getaffinity(0, sizeof before, &before);
  {
    const Seated seated(here.near_source.back());
    ::sched_getaffinity(0, sizeof inside, &inside);
    EXPECT_EQ(CPU_COUNT(&inside), 1);
    EXPECT_TRUE(CPU_ISSET(here.near_source.back(), &inside));
  }
  ::sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace waywiser
