#include "waywiser/measure/spin_cpus.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace waywiser {
namespace {

std::pair<int, int> chosen(const SpinCpuChoices& choices) {
  const SpinCpus spin_cpus = choose_spin_cpus(choices);
  return {spin_cpus.source, spin_cpus.destination};
}

TEST(SpinCpus, AreOnDifferentCores) {
  EXPECT_EQ(chosen({{0, 1}, {0, 1}, {}}), std::pair(0, 1));
  EXPECT_EQ(chosen({{0, 1, 2, 3}, {0, 1, 2, 3}, {{0, 1}, {2, 3}}}), std::pair(0, 2));
  EXPECT_EQ(chosen({{4, 5}, {0, 1}, {}}), std::pair(4, 0));
}

TEST(SpinCpus, ShareACoreOrNothingWhenThereIsNoOther) {
  EXPECT_EQ(chosen({{0, 1}, {0, 1}, {{0, 1}}}), std::pair(0, 1));
  EXPECT_EQ(chosen({{3}, {3}, {}}), std::pair(-1, -1));
  EXPECT_EQ(chosen({}), std::pair(-1, -1));
}

TEST(SpinCpus, OfSeveralPairsAreAllDifferentOrNone) {
  const SpinCpuChoices any{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {{0, 4}, {1, 5}, {2, 6}, {3, 7}}};
  const auto cpus = [](const std::vector<SpinCpuChoices>& pairs) {
    std::vector<int> found;
    for (const SpinCpus& spin_cpus : choose_spin_cpus(pairs))
      found.insert(found.end(), {spin_cpus.source, spin_cpus.destination});
    return found;
  };
  EXPECT_EQ(cpus({any, any}), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(cpus({any, any, any}), (std::vector{0, 1, 2, 3, 4, 5}));  // cores are shared: three pairs need six CPUs
  EXPECT_EQ(cpus({any, any, any, any, any}), std::vector(10, -1));
  EXPECT_EQ(cpus({{{0, 1}, {2, 3}, {}}, {{2, 3}, {0, 1}, {}}}), (std::vector{0, 2, 3, 1}));
}

TEST(SpinCpus, AreTakenAndGivenBack) {
  const SpinCpuChoices here = spin_cpu_choices({"host_copy", host(0), host(0), 2, {}});
  ASSERT_FALSE(here.near_source.empty());
  cpu_set_t before, inside, after;
  ::sched_getaffinity(0, sizeof before, &before);
  {
    const OnCpu bound(here.near_source.back());
    ::sched_getaffinity(0, sizeof inside, &inside);
    EXPECT_EQ(CPU_COUNT(&inside), 1);
    EXPECT_TRUE(CPU_ISSET(here.near_source.back(), &inside));
  }
  ::sched_getaffinity(0, sizeof after, &after);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace waywiser
