#include "waywiser/heap/device/messages.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/heap/heap_ranks.hpp"
#include "tests/policy/made_up_rows.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/heap/message_protocols.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/message_defaults.hpp"

namespace waywiser {
namespace {

using one_sided::Inbox, one_sided::Protocols, one_sided::Scope;

PlanRow row(Bytes from, Bytes to, const std::string& way) {
  return made_up::group_row("put_message", "gpu", 2, from, to, way);
}

Protocols measured(std::vector<PlanRow> rows, bool has_lines = true) {
  Plan plan;
  plan.rows = std::move(rows);
  const Chooser chooser(std::move(plan));
  return message_protocols(&chooser, has_lines);
}

constexpr std::uint64_t never = ~std::uint64_t{0};

TEST(HeapMessages, ThePlanGivesTheThresholds) {
  EXPECT_EQ(measured({row(0, 100, "LL"), row(101, 5000, "LL128"), row(5001, 9000, "stores"), row(9001, 90000, "bulk")}),
            (Protocols{100, 5000, 9001}));
  EXPECT_EQ(measured({row(0, 100, "LL"), row(101, 5000, "LL128"), row(5001, 90000, "stores")}),
            (Protocols{100, 5000, never}));
  EXPECT_EQ(measured({row(0, 100, "LL"), row(101, 5000, "stores")}), (Protocols{100, 0, never}));
  EXPECT_EQ(measured({row(5001, 90000, "bulk"), row(0, 5000, "LL128")}), (Protocols{0, 5000, 5001}));
  EXPECT_EQ(measured({row(0, 5000, "stores"), row(5001, 9000, "LL128")}), (Protocols{0, 0, never}));
  EXPECT_EQ(measured({row(0, 100, "LL"), row(101, 5000, "LL128"), row(5001, 90000, "bulk")}, false),
            (Protocols{100, 0, 5001}));
  EXPECT_LE(measured({row(0, ~Bytes{0}, "LL")}).packets, Bytes{1} << 30);
}

TEST(HeapMessages, ARowThatNoKernelFollowsIsTold) {
  const auto told = [](std::vector<PlanRow> rows) {
    testing::internal::CaptureStderr();
    measured(std::move(rows));
    return testing::internal::GetCapturedStderr();
  };
  const std::string why = " does not run: a kernel takes LL, above it LL128, stores, then bulk\n";
  EXPECT_EQ(told({row(0, 5000, "stores"), row(5001, 9000, "LL128"), row(9001, 90000, "bulk")}),
            "waywiser: put_message of gpu arrays: LL128, which the plan has from 5001 on," + why);
  EXPECT_EQ(told({row(0, 100, "bulk"), row(101, 5000, "LL")}),
            "waywiser: put_message of gpu arrays: bulk, which the plan has from 0 on," + why +
                "waywiser: put_message of gpu arrays: LL, which the plan has from 101 on," + why);
  EXPECT_EQ(told({row(0, 100, "LL"), row(101, 5000, "LL128"), row(5001, 9000, "stores"), row(9001, 90000, "bulk")}),
            "");
}

TEST(HeapMessages, WithoutRowsTheDefaultsAre) {
  const Protocols with = message_protocols(nullptr, true), without = message_protocols(nullptr, false);
  EXPECT_EQ(with, (Protocols{defaults::heap_packets_beside_lines, defaults::heap_lines, never}));
  EXPECT_EQ(without, (Protocols{defaults::heap_packets, 0, never}));
  EXPECT_EQ(measured({}), with);
}

TEST(HeapMessages, OneWayForAll) {
  EXPECT_EQ(only_protocol("stores"), (Protocols{0, 0, never}));
  EXPECT_EQ(only_protocol("bulk"), (Protocols{0, 0, 0}));
  EXPECT_GT(only_protocol("LL").packets, 0u);
  EXPECT_GT(only_protocol("LL128").lines, 0u);
  EXPECT_THROW(only_protocol("LL129"), Error);
}

TEST(HeapMessages, LongerOnesThanTheInboxAreAnError) {
  const std::string said = problems_of(1, [](Group& group, Place place) {
    const Heap heap(group, "small", place, 4096);
    run_kernel(group, heap, [](const HostOneSided& ranks) {
      auto* data = ranks.at<std::uint64_t>(2048);
      put_message<Scope::block>(ranks, Inbox{128, 64}, data, data, 9, 1, 0);
    });
  });
  EXPECT_NE(said.find("rank 0, heap 'small': a message of 72 bytes is longer than the inbox at offset 128 takes"),
            std::string::npos)
      << said;
}

TEST(HeapMessages, AHeapFollowsThePlanOfItsGroup) {
  TestRanks ranks(2);
  ranks.chooser_of = [](int) {
    Plan plan;
    plan.rows = {row(0, 100, "LL"), row(101, 7000, "LL128"), row(7001, 9000, "bulk")};
    return std::make_shared<const Chooser>(std::move(plan));
  };
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Heap heap(group, "planned", host(0), 4096);
    require_that(heap.terms().protocols == Protocols{100, 7000, 7001}, "other protocols than the plan's");
    require_that(heap.inbox_bytes(50) < heap.inbox_bytes(5000) && heap.inbox_bytes(7000) == heap.inbox_bytes(1 << 20) &&
                     heap.inbox_bytes(7000) >= 7000,
                 "inboxes of other lengths");
    require_that(heap.why_no_lines().empty(), heap.why_no_lines());
  }),
            no_problems);
}

TEST(HeapMessages, BetweenMachinesThereAreNoLines) {
  TestRanks ranks(2);
  ranks.machines_apart = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    const Heap heap(group, "apart", host(0), 4096);
    require_that(heap.terms().protocols == message_protocols(nullptr, false), "protocols with lines");
    require_that(heap.why_no_lines() == "stores do not reach all ranks", heap.why_no_lines());
  }),
            no_problems);
}

// By each protocol: nobody puts.
TEST(HeapMessages, ThoseThatNobodyPutsAreAnError) {
  for (const char* way : {"LL", "LL128", "stores"}) {
    TestRanks ranks(2);
    ranks.virtual_gpus = 2;
    const auto problems = ranks.in_processes([way](Group& group) {
      Heap heap(group, "none", gpu(group.rank()), 4096);
      heap.set_deadline(0.05);
      if (group.rank() == 0)
        run_kernel(group, heap, [way](const HostOneSided& part) {
          one_sided::HeapTerms terms = part.terms();
          terms.protocols = only_protocol(way);
          const HostOneSided ranks_by_way(part.gpu(), terms);
          wait_message<Scope::block>(ranks_by_way, Inbox{0, 480}, ranks_by_way.at<int>(3072), 60, 5, 1);
        });
    });
    EXPECT_NE(problems[0].find("rank 0, heap 'none': rank 1 did not change the word at offset "), std::string::npos)
        << way << ": " << problems[0];
    EXPECT_NE(problems[0].find(" within 50.0 ms: it is 0, and a kernel waits for 5"), std::string::npos)
        << way << ": " << problems[0];
  }
}

// A bulk copy whose loads and stores are done as late as its waits allow; what is not loaded yet is not what was there.
class LateBulk {
 public:
  explicit LateBulk(unsigned bytes) : memory_(bytes), piece_(one_sided::bulk_piece_of(bytes)) {}

  unsigned piece() const { return piece_; }
  void begin() const {}
  void load(unsigned stage, const std::byte* from, unsigned bytes) const {
    std::fill_n(at(stage), piece_, std::byte{0xee});
    loads_[stage] = {from, bytes};
  }
  void wait_loaded(unsigned stage, unsigned turn) const {
    if (turn % 2 != turns_[stage] % 2) ADD_FAILURE() << "stage " << stage << " has had " << turns_[stage] << " loads";
    ++turns_[stage];
    std::copy_n(loads_[stage].first, loads_[stage].second, at(stage));
  }
  void store(unsigned stage, std::byte* to, unsigned bytes) const { stores_.push_back({stage, to, bytes}); }
  void wait_read_but_newest() const { make_all_but(1); }
  void wait_stored() const { make_all_but(0); }
  void end() const { EXPECT_TRUE(stores_.empty()); }

 private:
  struct Store {
    unsigned stage;
    std::byte* to;
    unsigned bytes;
  };
  std::byte* at(unsigned stage) const { return memory_.data() + one_sided::bulk_barriers + stage * piece_; }
  void make_all_but(std::size_t left) const {
    for (; stores_.size() > left; stores_.erase(stores_.begin()))
      std::copy_n(at(stores_[0].stage), stores_[0].bytes, stores_[0].to);
  }

  mutable std::vector<std::byte> memory_;
  unsigned piece_;
  mutable std::pair<const std::byte*, unsigned> loads_[one_sided::bulk_stages] = {};
  mutable unsigned turns_[one_sided::bulk_stages] = {};
  mutable std::vector<Store> stores_;
};

TEST(HeapMessages, ABulkCopyUsesEachStageAgainWhenItIsRead) {
  for (const unsigned pieces : {0u, 1u, 2u, 3u, 4u, 5u, 9u})
    for (const unsigned more : {0u, 16u, 112u}) {
      const std::size_t bytes = pieces * 128 + more;
      std::vector<std::byte> from(bytes), to(bytes + 16);
      for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<std::byte>(i * 7 + i / 128 + 1);
      one_sided::bulk_copy(LateBulk(one_sided::least_staging), to.data(), from.data(), bytes);
      EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin())) << bytes;
      EXPECT_EQ(to[bytes], std::byte{0}) << bytes;
    }
}

}  // namespace
}  // namespace waywiser
