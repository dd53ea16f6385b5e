#include "waywiser/collective/device_schedule/program_algorithm.hpp"

#include <gtest/gtest.h>

#include "tests/collective/made_up_series.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/landing_plan.hpp"
#include "waywiser/kernels/block/ll128.hpp"

namespace waywiser {
namespace {

using program::MessagePlan;

std::string chosen(const ProgramAlgorithms& algorithms, Bytes bytes) { return text(algorithms.of(bytes)); }

CollectiveSeries made_up_exchanges(std::string way, Seconds start, double rate) {
  return made_up_series("prepared_exchange", std::move(way), start, rate);
}

TEST(ProgramAlgorithm, NamesAreReadAsTheyAreWritten) {
  for (const char* name : {"LL", "LL128", "bulk", "direct", "LL(blocks=1)", "LL128(piece=1K)", "bulk(piece=64K)",
                           "direct(blocks=64,piece=1040)"}) {
    const auto algorithm = program_algorithm(parse_way(name));
    ASSERT_TRUE(algorithm) << name;
    EXPECT_EQ(text(*algorithm), name);
  }
  for (const char* name : {"LL12", "directly", "LL(blocks=0)", "LL(blocks=9999)", "LL(piece=16)", "LL(piece=1001)",
                           "LL(piece=2G)", "LL(piece=-1)", "LL(piece=many)", "bulk(threads=4)"})
    EXPECT_FALSE(program_algorithm(parse_way(name))) << name;
}

TEST(ProgramAlgorithm, WithoutAPlanTheDefaultsApply) {
  ProgramAlgorithms none(nullptr);
  EXPECT_EQ(chosen(none, 8), "LL");
  EXPECT_EQ(chosen(none, 64 << 10), "LL128");
  EXPECT_EQ(chosen(none, (1 << 20) + 1), "direct");
  none.set_why_no_ll128("no NVLink");
  EXPECT_EQ(chosen(none, 64 << 10), "LL");
  EXPECT_EQ(chosen(none, (64 << 10) + 1), "direct");
}

TEST(ProgramAlgorithm, WhereLinesMayBreakLL128IsNotTaken) {
  const Chooser chooser = chooser_of({made_up_exchanges("LL128", 1e-6, 1e9)});
  ProgramAlgorithms algorithms(&chooser);
  EXPECT_EQ(chosen(algorithms, 8), "LL128");
  algorithms.set_why_no_ll128("no NVLink");
  const ProgramAlgorithms copy = algorithms;
  testing::internal::CaptureStderr();
  EXPECT_EQ(chosen(algorithms, 8), "LL");
  EXPECT_EQ(chosen(copy, 8), "LL");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "waywiser: prepared_exchange of gpu arrays: LL128, which the plan has from 0 on, does not run: no NVLink\n")
      << "said once, whichever copy is asked";
  algorithms.set(program_algorithm(parse_way("LL128(piece=1K)")));
  try {
    algorithms.of(8);
    FAIL() << "it is the only one and cannot be";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_STREQ(error.what(), "a message of a schedule by LL128(piece=1K): no NVLink");
  }
}

TEST(ProgramAlgorithm, MadeUpMeasurementsLeadToTheChoice) {
  const Chooser chooser =
      chooser_of({made_up_exchanges("LL(piece=1K)", 1e-6, 1e9), made_up_exchanges("direct(blocks=16)", 2e-6, 1e10),
                  made_up_exchanges("bulk(blocks=64,piece=64K)", 2e-5, 1e11)});
  const ProgramAlgorithms algorithms(&chooser);
  EXPECT_EQ(chosen(algorithms, 8), "LL(piece=1K)");
  EXPECT_EQ(chosen(algorithms, 40000), "direct(blocks=16)");
  EXPECT_EQ(chosen(algorithms, Bytes{8} << 20), "bulk(blocks=64,piece=64K)") << "not the default's direct";
}

TEST(ProgramAlgorithm, APlanWithoutThemLeavesTheDefaults) {
  CollectiveSeries other = made_up_exchanges("bulk", 1e-6, 1e10);
  other.operation = "message";
  const Chooser chooser = chooser_of({other});
  EXPECT_EQ(chosen(ProgramAlgorithms(&chooser), 8), "LL");
}

TEST(ProgramAlgorithm, TheOnlyOneIsTakenOrRefused) {
  ProgramAlgorithms algorithms(nullptr);
  algorithms.set(program_algorithm(parse_way("bulk(blocks=2)")));
  EXPECT_EQ(chosen(algorithms, 8), "bulk(blocks=2)");
  algorithms.set(program_algorithm(parse_way("direct(blocks=257)")));
  EXPECT_THROW(algorithms.of(8), Error) << "a kernel has 256 blocks at most";
  algorithms.set({});
  EXPECT_EQ(chosen(algorithms, 8), "LL");
}

TEST(ProgramAlgorithm, PiecesCarryAllBytesWithinThePlace) {
  using ProgramKind = ProgramAlgorithm::Kind;
  for (const char* name :
       {"LL", "LL(piece=256)", "LL128", "LL128(piece=256)", "bulk", "bulk(piece=1M)", "direct", "direct(piece=256)"})
    for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4097}, Bytes{1000003}, Bytes{5} << 30})
      for (const bool put : {false, true}) {
        const bool direct = std::string_view(name).starts_with("direct") && bytes != 0;
        const MessagePlan plan = MessagePlan::of(bytes, put, direct, *program_algorithm(parse_way(name)));
        const bool flagged = plan.kind == ProgramKind::ll || plan.kind == ProgramKind::ll128;
        EXPECT_EQ(flagged, name[0] == 'L' && !put && bytes != 0) << name;
        EXPECT_EQ(plan.piece % (plan.kind == ProgramKind::ll128 ? block::data_bytes_of_pair : 16), 0u);
        EXPECT_GE(plan.pieces * plan.piece, bytes);
        EXPECT_LE(plan.pieces, 65536u) << name << ", " << bytes;
        const Bytes flags = flagged ? 0 : plan.pieces * sizeof(std::uint64_t);
        const Bytes lines = block::pairs_for(bytes) * block::wire_bytes_of_pair;
        const Bytes slot = direct                            ? 0
                           : plan.kind == ProgramKind::ll    ? 2 * bytes
                           : plan.kind == ProgramKind::ll128 ? lines
                                                             : bytes;
        EXPECT_GE(plan.slot_at, flags);
        EXPECT_GE(plan.bytes, plan.slot_at + slot);
      }
}

TEST(View, DividersChangeNoAddress) {
  std::vector<std::byte> memory(1);
  std::vector<std::uint64_t> offsets(40);
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = i * i * 1000;
  const auto address = [&](const program::View& view, std::uint64_t byte) { return view.at(byte) - memory.data(); };
  for (const std::uint64_t run : {1, 3, 4, 7, 64, 4096, 65537, 1 << 20})
    for (const std::uint64_t middle : {1, 2, 3, 40, 1000})
      for (const std::uint64_t inner : {1, 5, 31, 512}) {
        program::View slow;
        slow.data = memory.data();
        slow.run = run;
        slow.counts[0] = middle, slow.counts[1] = inner;
        slow.strides[0] = 7 << 20, slow.strides[1] = 11 << 10, slow.strides[2] = 13;
        program::View fast = slow;
        const std::uint64_t bytes = std::min<std::uint64_t>(run * middle * inner * 3, program::Divider::end);
        fast.set_dividers(bytes);
        EXPECT_TRUE(fast.has_dividers);
        for (std::uint64_t byte = 0; byte < bytes; byte += 1 + byte / 3 + bytes / 50)
          ASSERT_EQ(address(fast, byte), address(slow, byte)) << run << " " << middle << " " << inner << ": " << byte;
        ASSERT_EQ(address(fast, bytes - 1), address(slow, bytes - 1));
        fast.offsets = slow.offsets = offsets.data();
        for (std::uint64_t byte = 0; byte < std::min(bytes, run * offsets.size()); byte += 1 + bytes / 50)
          ASSERT_EQ(address(fast, byte), address(slow, byte));
      }
  program::View too_long;
  too_long.run = 8;
  too_long.set_dividers(program::Divider::end + 1);
  EXPECT_FALSE(too_long.has_dividers);
}

TEST(Divider, DividesAllNumbersBelowItsEnd) {
  for (const std::uint32_t divisor : {1u, 2u, 3u, 5u, 7u, 240u, 641u, 65535u, 65536u, 1000003u, (1u << 31) - 1}) {
    const program::Divider divider(divisor);
    const auto last = static_cast<std::uint32_t>(program::Divider::end - 1);
    for (const std::uint32_t number :
         {0u, 1u, divisor - 1, divisor, last / divisor * divisor - 1, last / divisor * divisor, last - 1, last})
      EXPECT_EQ(divider.quotient(std::min(number, last)), std::min(number, last) / divisor)
          << number << " / " << divisor;
  }
}

}  // namespace
}  // namespace waywiser
