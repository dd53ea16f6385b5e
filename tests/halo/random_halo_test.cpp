#include <gtest/gtest.h>

#include <string>

#include "tests/base/random_cases.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/halo/rank_fields.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/halo/halo_exchange.hpp"

// Domains by chance, cut up over 1 to 8 ranks that exchange for real: equal to the undivided domain to the last bit.
namespace waywiser {
namespace {

constexpr int largest_group = 8;

void try_variants(Group& group, std::uint64_t seed, bool on_gpu) {
  const MadeUpDomain domain = seed / largest_group % 2 == 0 ? MadeUpDomain::of_grid(group.size(), seed)
                                                            : MadeUpDomain::of_lists(group.size(), seed);
  RankFields fields(group, domain, on_gpu);
  HaloExchange exchange(group, fields.partition(), fields.arrays());
  const bool direct = direct_is_available(exchange);
  int start = 0;
  const auto require_right = [&] {
    fields.fill(++start);
    exchange.exchange();
    try {
      fields.require_exchanged(start);
    } catch (const std::exception& error) {
      require_that(false, exchange.explain() + ", seed " + std::to_string(seed) + ": " + error.what());
    }
  };
  for (const HaloVariant variant : halo_variants) {
    const bool of_gpus = variant == HaloVariant::strided || variant == HaloVariant::gpu_aware;
    if ((variant == HaloVariant::direct && !direct) || (of_gpus && !on_gpu)) continue;
    exchange.use(variant);
    require_right();
  }
  const std::span<const HaloVariant> all(mixable), of_hosts = all.first(2);
  for (const auto among : direct ? std::vector{all, of_hosts} : std::vector{of_hosts}) {
    exchange.use(made_up_mix(fields.partition(), seed, among).gives);
    require_right();
  }
}

void try_domains(unsigned cases, bool on_gpu) {
  for (int size = 1; size <= largest_group; ++size) {
    TestRanks ranks(size);
    ranks.virtual_gpus = on_gpu ? size : 0;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      for (unsigned seed = static_cast<unsigned>(size); seed <= cases; seed += largest_group)
        try_variants(group, (on_gpu ? 100'000 : 200'000) + seed, on_gpu);
      group.barrier();
    }),
              no_problems)
        << size << " ranks";
  }
}

TEST(RandomHalos, AreExchangedOnHosts) { try_domains(random_cases(16), false); }
// A quarter of the cases: virtual GPUs of eight processes are slow.
TEST(RandomHalos, AreExchangedOnGpus) { try_domains(random_cases(32) / 4, true); }

}  // namespace
}  // namespace waywiser
