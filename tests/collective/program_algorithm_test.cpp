#include "waywiser/collective/device_schedule/program_algorithm.hpp"

#include <gtest/gtest.h>

#include "tests/collective/made_up_series.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/landing_plan.hpp"

namespace waywiser {
namespace {

using program::MessagePlan;

std::string chosen(const ProgramAlgorithms& algorithms, Bytes bytes) { return text(algorithms.of(bytes)); }

CollectiveSeries made_up_exchanges(std::string way, Seconds start, double rate) {
  return made_up_series("prepared_exchange", std::move(way), start, rate);
}

TEST(ProgramAlgorithm, NamesAreReadAsTheyAreWritten) {
  for (const char* name : {"LL", "bulk", "direct", "LL(blocks=1)", "bulk(piece=64K)", "direct(piece=1040,blocks=64)"}) {
    const auto algorithm = parse_program_algorithm(name);
    ASSERT_TRUE(algorithm) << name;
    EXPECT_EQ(text(*algorithm), name);
  }
  for (const char* name : {"",
                           "LL128",
                           "directly",
                           "LL(",
                           "LL()",
                           "LL(blocks=)",
                           "LL(blocks=0)",
                           "LL(blocks=4",
                           "LL(blocks=4)x",
                           "LL(blocks=9999)",
                           "LL(piece=64K",
                           "LL(piece=)",
                           "LL(piece=16)",
                           "LL(piece=1001)",
                           "LL(piece=2G)",
                           "LL(piece=-1)",
                           "LL(piece=1K,)",
                           "LL(piece=1K,piece=1K)",
                           "LL(blocks=4,piece=1K)",
                           "bulk(threads=4)"})
    EXPECT_FALSE(parse_program_algorithm(name)) << name;
}

TEST(ProgramAlgorithm, WithoutAPlanTheDefaultsApply) {
  const ProgramAlgorithms none(nullptr);
  EXPECT_EQ(chosen(none, 8), "LL");
  EXPECT_EQ(chosen(none, 64 << 10), "LL");
  EXPECT_EQ(chosen(none, (64 << 10) + 1), "direct");
}

TEST(ProgramAlgorithm, MadeUpMeasurementsLeadToTheChoice) {
  const Chooser chooser =
      chooser_of({made_up_exchanges("LL(piece=1K)", 1e-6, 1e9), made_up_exchanges("direct(blocks=16)", 2e-6, 1e10),
                  made_up_exchanges("bulk(piece=64K,blocks=64)", 2e-5, 1e11)});
  const ProgramAlgorithms algorithms(&chooser);
  EXPECT_EQ(chosen(algorithms, 8), "LL(piece=1K)");
  EXPECT_EQ(chosen(algorithms, 40000), "direct(blocks=16)");
  EXPECT_EQ(chosen(algorithms, Bytes{8} << 20), "bulk(piece=64K,blocks=64)") << "not the default's direct";
}

TEST(ProgramAlgorithm, APlanWithoutThemLeavesTheDefaults) {
  CollectiveSeries other = made_up_exchanges("bulk", 1e-6, 1e10);
  other.operation = "message";
  const Chooser chooser = chooser_of({other, made_up_exchanges("by pigeon", 1e-6, 1e10)});
  EXPECT_EQ(chosen(ProgramAlgorithms(&chooser), 8), "LL");
}

TEST(ProgramAlgorithm, TheOnlyOneIsTakenOrRefused) {
  ProgramAlgorithms algorithms(nullptr);
  algorithms.set(parse_program_algorithm("bulk(blocks=2)"));
  EXPECT_EQ(chosen(algorithms, 8), "bulk(blocks=2)");
  algorithms.set(parse_program_algorithm("direct(blocks=65)"));
  EXPECT_THROW(algorithms.of(8), Error) << "a kernel has 64 blocks at most";
  algorithms.set({});
  EXPECT_EQ(chosen(algorithms, 8), "LL");
}

TEST(ProgramAlgorithm, PiecesCarryAllBytesWithinThePlace) {
  for (const char* name : {"LL", "LL(piece=256)", "bulk", "bulk(piece=1M)", "direct", "direct(piece=256)"})
    for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4097}, Bytes{1000003}, Bytes{5} << 30})
      for (const bool put : {false, true}) {
        const bool direct = std::string_view(name).starts_with("direct") && bytes != 0;
        const MessagePlan plan = MessagePlan::of(bytes, put, direct, *parse_program_algorithm(name));
        EXPECT_EQ(plan.kind == ProgramAlgorithm::Kind::ll, name[0] == 'L' && !put && bytes != 0) << name;
        EXPECT_EQ(plan.piece % 16, 0u);
        EXPECT_GE(plan.pieces * plan.piece, bytes);
        EXPECT_LE(plan.pieces, 65536u) << name << ", " << bytes;
        const Bytes flags = plan.kind == ProgramAlgorithm::Kind::ll ? 0 : plan.pieces * sizeof(std::uint64_t);
        const Bytes slot = direct ? 0 : plan.kind == ProgramAlgorithm::Kind::ll ? 2 * bytes : bytes;
        EXPECT_GE(plan.slot_at, flags);
        EXPECT_GE(plan.bytes, plan.slot_at + slot);
      }
}

}  // namespace
}  // namespace waywiser
