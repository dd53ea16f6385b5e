#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/halo/rank_fields.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/tuning.hpp"

// Variants for each side, and the choice among them.
namespace waywiser {
namespace {

// A periodic grid that is cut in two dimensions: its sides differ in size and in how they lie.
MadeUpDomain cut_twice() {
  const int parts[] = {2, 2};
  return MadeUpDomain::of(even_grid({8, 40}, {1, 2}, {true, true}, parts), 5);
}

// To ranks in the same row of the grid by `along`, to all others by `across`.
std::vector<HaloVariant> by_row(const HaloPartition& partition, HaloVariant along, HaloVariant across) {
  std::vector<HaloVariant> all;
  for (const HaloSide& each : partition.gives) all.push_back(each.face[0] == 0 ? along : across);
  return all;
}

void exchange_by(const std::vector<HaloVariant>& mix, HaloExchange& exchange, RankFields& fields) {
  const HaloCounts before = exchange.counts(HaloVariant::mixed);
  exchange.use(mix);
  require_that(exchange.variant() == HaloVariant::mixed, exchange.explain());
  for (int start = 0; start < 3; ++start) {
    fields.fill(start);
    exchange.exchange();
    fields.require_exchanged(start);
  }
  require_that(exchange.counts(HaloVariant::mixed).exchanges == before.exchanges + 3, "three exchanges are counted");
  const std::vector<HaloSideUse> sides = exchange.sides();
  require_that(sides.size() == mix.size(), "a use for each side");
  for (std::size_t i = 0; i < mix.size(); ++i) require_that(sides[i].variant == mix[i], "the variant of a side");
}

TEST(HaloChoice, SidesHaveTheirOwnVariantsOnHosts) {
  EXPECT_EQ(TestRanks(4).in_processes([&](Group& group) {
    const MadeUpDomain domain = cut_twice();
    RankFields fields(group, domain, false);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    const auto mix = by_row(fields.partition(), HaloVariant::packed, HaloVariant::per_neighbor);
    exchange_by(mix, exchange, fields);
    const std::string text = exchange.explain();
    require_that(text.starts_with("mixed: asked for\nto rank "), text);
    require_that(text.find("at (0, 1), ") != std::string::npos, text);
    const auto refused = [&](const std::vector<HaloVariant>& variants, const std::string& why) {
      const std::string said = error_of([&] { exchange.use(variants); });
      require_that(said == why, said);
    };
    const bool odd = group.rank() == 2;
    refused(odd ? std::vector<HaloVariant>{HaloVariant::packed} : mix,
            "rank 2: 1 variants of a halo exchange for " + std::to_string(mix.size()) + " sides of the partition");
    refused(odd ? std::vector(mix.size(), HaloVariant::mixed) : mix,
            "rank 2: a side of a halo exchange has none of its variants");
    refused(odd ? std::vector(mix.size(), HaloVariant::whole_field) : mix,
            "a halo exchange: whole_field serves all sides at once, so no side has another variant");
    refused(odd ? std::vector(mix.size(), HaloVariant::strided) : mix,
            "a halo exchange: strided serves all sides at once, so no side has another variant");
    refused(std::vector(mix.size(), HaloVariant::direct), "the fields are in host memory, which no kernel serves");
    refused(std::vector(mix.size(), HaloVariant::strided),
            "the fields are in host memory, which no copy engine serves");
    require_that(exchange.variant() == HaloVariant::mixed, "after an error all is as before");
    exchange.use(std::vector(mix.size(), HaloVariant::whole_field));
    require_that(exchange.variant() == HaloVariant::whole_field, "one variant for all sides is no mix");
    group.barrier();
  }),
            no_problems);
}

TEST(HaloChoice, SidesHaveTheirOwnVariantsOnGpus) {
  TestRanks ranks(4);
  ranks.virtual_gpus = 4;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = cut_twice();
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    for (const HaloVariant along : {HaloVariant::per_neighbor, HaloVariant::packed, HaloVariant::direct})
      for (const HaloVariant across : {HaloVariant::packed, HaloVariant::direct})
        if (along != across) exchange_by(by_row(fields.partition(), along, across), exchange, fields);
    // Messages of hosts for one part, one kernel for the other: the copies over the bus are those of the first part.
    const HaloCounts before = exchange.counts(HaloVariant::mixed);
    exchange.use(by_row(fields.partition(), HaloVariant::packed, HaloVariant::direct));
    exchange.exchange();
    const HaloCounts after = exchange.counts(HaloVariant::mixed);
    require_that(after.bus_copies - before.bus_copies == 2, "one copy each way");
    group.barrier();
  }),
            no_problems);
}

TEST(HaloChoice, GpusWithoutACellHaveTheVariantsOfGpus) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    MadeUpDomain domain;
    const auto has_cells = [](const HaloPartition& each) { return each.cells != 0; };
    for (std::uint64_t seed = 0; domain.partitions.empty() || std::ranges::any_of(domain.partitions, has_cells); ++seed)
      domain = MadeUpDomain::of_lists(group.size(), seed);
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    for (const HaloVariant variant :
         {HaloVariant::strided, HaloVariant::gpu_aware, HaloVariant::whole_field, HaloVariant::packed}) {
      exchange.use(variant);
      exchange.exchange();
      fields.require_exchanged(0);
    }
    group.barrier();
  }),
            no_problems);
}

TEST(HaloChoice, AMixOfKernelsCanBeCaptured) {
  TestRanks ranks(4);
  ranks.virtual_gpus = 4;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = cut_twice();
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    exchange.use(by_row(fields.partition(), HaloVariant::packed, HaloVariant::direct));
    const std::string why =
        error_of([&] { static_cast<void>(fields.stream().capture([&] { exchange.start(fields.stream()); })); });
    require_that(why == "halo mixed goes through the host, which no graph can capture", why);
    for (int start = 0; start < 3; ++start) {
      fields.fill(start);
      exchange.exchange(fields.stream());
      group.synchronize(fields.stream());
      fields.require_exchanged(start);
    }
    exchange.use(HaloVariant::direct);
    const auto graph = fields.stream().capture([&] { exchange.exchange(fields.stream()); });
    fields.require_replays(group, *graph);
    group.barrier();
  }),
            no_problems);
}

// Kernels of two ranks on one GPU run in turns: they wait for each other only if that was asked for, or measured.
TEST(HaloChoice, RanksThatShareAGpuDoNotBeginWithKernels) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  ranks.kernels_on_shared_gpu = true;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const int parts[] = {1, 2};
    const MadeUpDomain domain = MadeUpDomain::of(even_grid({6, 16}, {1, 2}, {true, true}, parts), 5);
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    require_that(exchange.explain().starts_with("packed: the default where ranks share a GPU"), exchange.explain());
    const HaloTuning& tuning = exchange.tune(1e-3);
    for (const HaloTime& each : tuning.times) require_that(each.why_unavailable.empty(), each.why_unavailable);
    require_that(direct_is_available(exchange), exchange.explain());
    fields.fill(1);
    exchange.exchange();
    fields.require_exchanged(1);
    group.barrier();
  }),
            no_problems);
}

// All ranks get the same text.
void require_same(Group& group, const std::string& text) {
  std::vector<char> first(text.begin(), text.end());
  first.resize(4000);
  group.broadcast(Elements(Region{reinterpret_cast<std::byte*>(first.data()), first.size(), host(0)}, DataType::uint8),
                  0);
  require_that(text == first.data(), "rank 0 says: " + std::string(first.data()));
}

// The answer is used from then on; if there is time enough, mixes are tried.
TEST(HaloChoice, IsTuned) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(4);
    ranks.virtual_gpus = on_gpu ? 4 : 0;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      const MadeUpDomain domain = cut_twice();
      RankFields fields(group, domain, on_gpu);
      HaloExchange exchange(group, fields.partition(), fields.arrays());
      fields.fill(4);
      const HaloTuning tuning = exchange.tune(1e-3);
      fields.require_exchanged(4);
      require_that(exchange.variant() == tuning.chosen && tuning.rounds >= 1, "the chosen variant is used");
      require_that(tuning.virtual_gpus == on_gpu, "times of virtual GPUs are marked");
      for (const HaloTime& each : tuning.times) {
        const bool on_hosts = each.variant == HaloVariant::whole_field ||
                              (is_mixable(each.variant) && each.variant != HaloVariant::direct);
        require_that(each.why_unavailable.empty() == (on_gpu || on_hosts), "what is available");
        const std::uint64_t least = each.why_unavailable.empty() ? 2 : 0;
        require_that(exchange.counts(each.variant).exchanges >= least, "all variants were exchanged");
      }
      require_that(waywiser::explain(tuning).starts_with(std::string(name(tuning.chosen)) + ": "), "the chosen one");
      require_same(group, waywiser::explain(tuning));
      fields.fill(5);
      exchange.exchange();
      fields.require_exchanged(5);

      HaloTuning longer;
      for (Seconds time = 0.1; longer.kinds.size() < 2; time *= 2) longer = exchange.tune(time);
      for (const HaloKindTimes& each : longer.kinds)
        require_that(each.times.size() == (on_gpu ? 3u : 2u), "all variants that can be mixed");
      require_that(exchange.counts(HaloVariant::mixed).exchanges > 0, "mixes were exchanged");
      require_same(group, waywiser::explain(longer));
      require_that(exchange.explain().starts_with(waywiser::explain(longer)), exchange.explain());
      fields.fill(6);
      exchange.exchange();
      fields.require_exchanged(6);
      group.barrier();
    }),
              no_problems);
  }
}

}  // namespace
}  // namespace waywiser
