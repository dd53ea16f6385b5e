#include "waywiser/halo/halo_exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/halo/rank_fields.hpp"

namespace waywiser {
namespace {

MadeUpDomain made_up(int ranks, std::uint64_t seed) {
  return seed % 2 == 0 ? MadeUpDomain::of_grid(ranks, seed) : MadeUpDomain::of_lists(ranks, seed);
}

// A periodic grid in which every rank has values for all others.
MadeUpDomain usual_domain(int ranks) {
  const std::vector<std::int64_t> shape = {6, 16};
  const int parts[] = {1, ranks};
  return MadeUpDomain::of(even_grid(shape, {1, 2}, {true, true}, parts), 5);
}

void exchange_by(HaloVariant variant, HaloExchange& exchange, RankFields& fields) {
  exchange.use(variant);
  for (int start = 0; start < 3; ++start) {
    fields.fill(start);
    exchange.start();
    exchange.finish();
    fields.require_exchanged(start);
  }
  require_that(exchange.counts(variant).exchanges == 3, "three exchanges are counted");
}

TEST(HaloExchange, EveryVariantIsRightOnHosts) {
  for (const int size : {1, 2, 3, 5, 8})
    EXPECT_EQ(TestRanks(size).in_processes([&](Group& group) {
      for (std::uint64_t seed = 0; seed < 10; ++seed) {
        const MadeUpDomain domain = made_up(size, seed);
        RankFields fields(group, domain, false);
        HaloExchange exchange(group, fields.partition(), fields.arrays());
        for (const HaloVariant variant : {HaloVariant::whole_field, HaloVariant::per_neighbor, HaloVariant::packed})
          exchange_by(variant, exchange, fields);
      }
      group.barrier();
    }),
              no_problems)
        << size;
}

TEST(HaloExchange, EveryVariantIsRightOnGpus) {
  for (const int size : {1, 2, 3, 8}) {
    TestRanks ranks(size);
    ranks.virtual_gpus = size;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      for (const int seed : {0, 1, 2, 3, 4}) {
        const MadeUpDomain domain = seed == 0 ? usual_domain(size) : made_up(size, static_cast<std::uint64_t>(seed));
        RankFields fields(group, domain, true);
        HaloExchange exchange(group, fields.partition(), fields.arrays());
        const bool direct = direct_is_available(exchange);
        require_that(direct || (size > 1 && seed != 0), "direct where all ranks have cells: " + exchange.explain());
        for (const HaloVariant variant : halo_variants)
          if (direct || variant != HaloVariant::direct) exchange_by(variant, exchange, fields);
      }
      group.barrier();
    }),
              no_problems)
        << size;
  }
}

TEST(HaloExchange, OnAStreamAndInAGraph) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = usual_domain(3);
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    for (const HaloVariant variant : halo_variants) {
      exchange.use(variant);
      for (int start = 0; start < 3; ++start) {
        fields.fill(start);
        exchange.exchange(fields.stream());
        group.synchronize(fields.stream());
        fields.require_exchanged(start);
      }
      if (variant != HaloVariant::direct) {
        const std::string why =
            error_of([&] { static_cast<void>(fields.stream().capture([&] { exchange.start(fields.stream()); })); });
        const std::string words = variant == HaloVariant::gpu_aware ? " needs" : " goes through";
        require_that(why == "halo " + std::string(name(variant)) + words + " the host, which no graph can capture",
                     why);
        continue;
      }
      const auto graph = fields.stream().capture([&] { exchange.exchange(fields.stream()); });
      fields.require_replays(group, *graph);
    }
    group.barrier();
  }),
            no_problems);
}

// Fields of doubles on the GPUs of ranks that are all neighbours: each gives `each` cells to each other rank.
struct AllNeighbors {
  static constexpr std::uint64_t ranks = 4, others = ranks - 1, each = 4, cells = 2 * others * each, fields = 3;

  explicit AllNeighbors(Group& group)
      : memory(group.platform()->allocate(gpu_of_rank(group), fields * cells * 8, Allocation::gpu)) {
    for (std::uint64_t i = 0; i < fields; ++i)
      arrays.push_back({Elements(memory.region().slice(i * cells * 8, cells * 8), DataType::float64), 1, false});
    std::vector<std::vector<std::int64_t>> give(others), take(others);
    std::vector<HaloLists> lists;
    for (std::uint64_t i = 0; i < others; ++i) {
      for (std::uint64_t cell = 0; cell < each; ++cell) {
        give[i].push_back(static_cast<std::int64_t>(others * cell + i));
        take[i].push_back(static_cast<std::int64_t>(others * (each + cell) + i));
      }
      const int peer = static_cast<int>(i);
      lists.push_back({peer < group.rank() ? peer : peer + 1, give[i], take[i]});
    }
    partition = listed_partition(group.rank(), ranks, cells, lists);
  }

  Memory memory;
  std::vector<HaloArray> arrays;
  HaloPartition partition;
};

// N ranks, M fields; S1: bytes of a whole field, S2: of its boundary. Copies between a GPU and the host are counted.
TEST(HaloExchange, CopiesOverTheBusAreThoseOfTheFormulas) {
  using All = AllNeighbors;
  TestRanks ranks(All::ranks);
  ranks.virtual_gpus = All::ranks;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const All all(group);
    HaloExchange exchange(group, all.partition, all.arrays);
    constexpr std::uint64_t m = All::fields, n = All::ranks, s1 = All::cells * 8, s2 = (n - 1) * All::each * 8;
    const auto require_counts = [&](HaloVariant variant, const HaloCounts& wanted) {
      exchange.use(variant);
      exchange.exchange();
      require_that(exchange.counts(variant) == wanted, "counts of " + std::string(name(variant)));
    };
    require_counts(HaloVariant::whole_field, {1, m * (n - 1), m * s2, m * 2, m * 2 * s1});
    require_counts(HaloVariant::per_neighbor, {1, m * (n - 1), m * s2, m * (n - 1) * 2, m * 2 * s2});
    require_counts(HaloVariant::packed, {1, n - 1, m * s2, 2, m * 2 * s2});
    require_counts(HaloVariant::direct, {1, m * (n - 1), m * s2, 0, 0});
    require_counts(HaloVariant::strided, {1, n - 1, m * s2, m * (n - 1) * 2, m * 2 * s2});
    require_counts(HaloVariant::gpu_aware, {1, n - 1, m * s2, 0, 0});
    group.barrier();
  }),
            no_problems);
}

TEST(HaloExchange, SeveralAreUnderWayAtOnce) {
  for (const bool on_gpu : {false, true}) {
    TestRanks ranks(3);
    ranks.virtual_gpus = on_gpu ? 3 : 0;
    EXPECT_EQ(ranks.in_processes([&](Group& group) {
      const MadeUpDomain one = usual_domain(3), other = MadeUpDomain::of_grid(3, 8);
      RankFields first(group, one, on_gpu), second(group, other, on_gpu);
      HaloExchange a(group, first.partition(), first.arrays()), b(group, second.partition(), second.arrays());
      for (const HaloVariant variant : {HaloVariant::whole_field, HaloVariant::packed, HaloVariant::gpu_aware}) {
        const bool of_gpus = variant == HaloVariant::gpu_aware;
        if (of_gpus && !on_gpu) continue;
        a.use(of_gpus ? variant : HaloVariant::per_neighbor);
        b.use(variant);
        for (int start = 0; start < 4; ++start) {
          first.fill(start);
          second.fill(start);
          a.start();
          b.start();
          start % 2 == 0 ? a.finish() : b.finish();
          start % 2 == 0 ? b.finish() : a.finish();
          first.require_exchanged(start);
          second.require_exchanged(start);
        }
      }
      group.barrier();
    }),
              no_problems);
  }
}

TEST(HaloExchange, FieldsAreAddedAndRemoved) {
  EXPECT_EQ(TestRanks(3).in_processes([&](Group& group) {
    const MadeUpDomain domain = usual_domain(3);
    RankFields fields(group, domain, false);
    require_that(fields.arrays().size() >= 2, "a domain of several fields");
    HaloExchange exchange(group, fields.partition(), std::span(fields.arrays()).first(1));
    exchange.exchange();
    exchange.set_fields(fields.arrays());
    fields.fill(1);
    exchange.exchange();
    fields.require_exchanged(1);
    exchange.set_fields({});
    exchange.exchange();
    require_that(exchange.counts(HaloVariant::packed).exchanges == 3, "exchanges of all fields are counted");
    group.barrier();
  }),
            no_problems);
}

TEST(HaloExchange, WhereGpusDoNotReachEachOtherMessagesServe) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.no_peer_access = {{"", "a wall"}, {"a wall", ""}};
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = usual_domain(2);
    RankFields fields(group, domain, true);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    require_that(exchange.variant() == HaloVariant::packed, exchange.explain());
    const std::string why = error_of([&] { exchange.use(HaloVariant::direct); });
    require_that(why != "no error" && exchange.explain().find(why) != std::string::npos, exchange.explain());
    for (const HaloVariant variant :
         {HaloVariant::whole_field, HaloVariant::per_neighbor, HaloVariant::packed, HaloVariant::gpu_aware})
      exchange_by(variant, exchange, fields);
    group.barrier();
  }),
            no_problems);
}

TEST(HaloExchange, SomeRanksHaveTheirFieldsOnTheHost) {
  TestRanks ranks(3);
  ranks.virtual_gpus = 3;
  EXPECT_EQ(ranks.in_processes([&](Group& group) {
    const MadeUpDomain domain = usual_domain(3);
    RankFields fields(group, domain, group.rank() != 1);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    const std::string why = error_of([&] { exchange.use(HaloVariant::direct); });
    require_that(why == "a schedule on arrays of GPUs: rank 1 has arrays of the host", why);
    const std::string not_aware = error_of([&] { exchange.use(HaloVariant::gpu_aware); });
    require_that(not_aware == "rank 1 has its fields in host memory", not_aware);
    for (const HaloVariant variant : {HaloVariant::whole_field, HaloVariant::per_neighbor, HaloVariant::packed})
      exchange_by(variant, exchange, fields);
    group.barrier();
  }),
            no_problems);
}

TEST(HaloExchange, WhatDoesNotFitIsRefusedAtAllRanks) {
  EXPECT_EQ(TestRanks(2).in_processes([&](Group& group) {
    const bool odd = group.rank() == 1;
    std::vector<double> values(20);
    std::vector<float> floats(20);
    const std::vector<std::int64_t> two = {0, 1}, three = {4, 5, 6};
    const auto refused = [&](const std::vector<std::int64_t>& take, std::vector<HaloArray> fields) {
      const HaloLists lists[] = {{1 - group.rank(), two, take}};
      HaloPartition partition = listed_partition(group.rank(), 2, 10, lists);
      return error_of([&] { HaloExchange(group, partition, fields); });
    };
    const auto require_error = [](const std::string& said, const std::string& wanted) {
      require_that(said == wanted, said);
    };
    const std::span<double> all(values);
    const Elements ten(all.first(10)), tail(all.last(11)), next(all.last(10)), shared(all.subspan(9, 10)),
        other_type(std::span<float>(floats).first(10));
    const std::vector<std::int64_t> right = {4, 5};
    require_error(refused(odd ? three : right, {{ten}}),
                  "rank 1: takes 1 parts of 24 bytes from rank 0, which gives 1 parts of 16 bytes");
    require_error(refused(right, {{odd ? other_type : ten}}),
                  "rank 1 has another type of field 0 in a halo exchange than rank 0");
    require_error(refused(right, {{odd ? tail : ten}}),
                  "rank 1: a halo exchange: field 0 has 11 elements, not 1 for each of 10 cells");
    require_error(refused(right, {{ten}, {odd ? shared : next}}), "rank 1: a halo exchange: fields 0 and 1 overlap");
    group.barrier();
  }),
            no_problems);
}

TEST(HaloExchange, CallsInTheWrongOrderAreRefused) {
  EXPECT_EQ(TestRanks(1).in_processes([&](Group& group) {
    const MadeUpDomain domain = usual_domain(1);
    RankFields fields(group, domain, false);
    HaloExchange exchange(group, fields.partition(), fields.arrays());
    const auto require_error = [](const std::function<void()>& call, const std::string& wanted) {
      require_that(error_of(call) == wanted, error_of(call));
    };
    require_error([&] { exchange.finish(); }, "a halo exchange: finish() without start()");
    require_error([&] { exchange.use(HaloVariant::direct); }, "the fields are in host memory, which no kernel serves");
    require_error([&] { exchange.tune(0); }, "rank 0: a halo exchange is tuned for a time above 0");
    exchange.start();
    require_error([&] { exchange.start(); }, "a halo exchange: it is started again before finish()");
    require_error([&] { exchange.use(HaloVariant::packed); },
                  "a halo exchange: the variant is changed before finish()");
    require_error([&] { exchange.set_fields({}); }, "a halo exchange: the fields are changed before finish()");
    require_error([&] { exchange.tune(1); }, "a halo exchange: it is tuned before finish()");
    exchange.finish();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
