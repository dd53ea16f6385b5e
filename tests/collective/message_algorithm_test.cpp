#include "waywiser/collective/messages/message_algorithm.hpp"

#include <gtest/gtest.h>

#include "tests/collective/made_up_series.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/collective/messages/joint_work.hpp"

namespace waywiser {
namespace {

using messages::Kind;

std::string chosen(const MessageAlgorithms& algorithms, Bytes bytes, bool ll128 = true) {
  return text(algorithms.of(bytes, ll128));
}

CollectiveSeries made_up_messages(std::string way, Seconds start, double rate) {
  return made_up_series("message", std::move(way), start, rate);
}

TEST(MessageAlgorithm, NamesAreReadAsTheyAreWritten) {
  for (const char* name : {"LL", "LL128", "bulk", "LL(blocks=1)", "LL128(blocks=32)", "bulk(blocks=64)"}) {
    const auto algorithm = message_algorithm(parse_way(name));
    ASSERT_TRUE(algorithm) << name;
    EXPECT_EQ(text(*algorithm), name);
  }
  for (const char* name : {"packets", "one_shot", "LL12", "LL(blocks=0)", "LL(blocks=4x)", "LL(blocks=-1)",
                           "LL(blocks=9999)", "bulk(threads=4)", "bulk(blocks=4,piece=1K)"})
    EXPECT_FALSE(message_algorithm(parse_way(name))) << name;
}

TEST(MessageAlgorithm, WithoutAPlanTheDefaultsApply) {
  const MessageAlgorithms none(nullptr);
  EXPECT_EQ(chosen(none, 4 << 10), "LL");
  EXPECT_EQ(chosen(none, (4 << 10) + 1), "LL128");
  EXPECT_EQ(chosen(none, Bytes{8} << 20), "LL128");
  EXPECT_EQ(chosen(none, (Bytes{8} << 20) + 1), "bulk");
  EXPECT_EQ(chosen(none, 256 << 10, false), "LL");
  EXPECT_EQ(chosen(none, (256 << 10) + 1, false), "bulk");
}

TEST(MessageAlgorithm, MadeUpMeasurementsLeadToTheChoice) {
  const Chooser chooser =
      chooser_of({made_up_messages("LL", 1e-6, 1e9), made_up_messages("LL128(blocks=16)", 2e-6, 1e10),
                  made_up_messages("bulk(blocks=32)", 2e-5, 1e11)});
  const MessageAlgorithms algorithms(&chooser);
  EXPECT_EQ(chosen(algorithms, 8), "LL");
  EXPECT_EQ(chosen(algorithms, 40000), "LL128(blocks=16)");
  EXPECT_EQ(chosen(algorithms, Bytes{8} << 20), "bulk(blocks=32)") << "not the default's LL128";
}

TEST(MessageAlgorithm, APlansLl128IsPassedOverWhereThereIsNone) {
  const Chooser chooser = chooser_of({made_up_messages("LL128", 1e-6, 1e10)});
  const MessageAlgorithms algorithms(&chooser);
  EXPECT_EQ(chosen(algorithms, 8), "LL128");
  testing::internal::CaptureStderr();
  EXPECT_EQ(chosen(algorithms, 8, false), "LL");
  EXPECT_EQ(chosen(algorithms, 8, false), "LL");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "waywiser: message of gpu arrays: LL128, which the plan has from 0 on, does not run: "
            "not all GPUs are joined by NVLink\n")
      << "said once";
}

TEST(MessageAlgorithm, APlanWithoutThemLeavesTheDefaults) {
  CollectiveSeries other = made_up_messages("bulk", 1e-6, 1e10);
  other.operation = "all_reduce";
  const Chooser chooser = chooser_of({other});
  EXPECT_EQ(chosen(MessageAlgorithms(&chooser), 8), "LL");
}

TEST(MessageAlgorithm, TheOnlyOneIsTakenOrRefused) {
  MessageAlgorithms algorithms(nullptr);
  algorithms.set(message_algorithm(parse_way("bulk(blocks=2)")));
  EXPECT_EQ(chosen(algorithms, 8), "bulk(blocks=2)");
  algorithms.set(message_algorithm(parse_way("LL128")));
  EXPECT_THROW(algorithms.of(8, false), Error);
  algorithms.set(message_algorithm(parse_way("LL(blocks=65)")));
  EXPECT_THROW(algorithms.of(8, true), Error) << "a message has 64 channels";
  algorithms.set({});
  EXPECT_EQ(chosen(algorithms, 8), "LL");
}

TEST(MessageAlgorithm, PiecesCarryAllBytesInNoMoreBlocks) {
  messages::Layout few, usual;
  few.ranks = usual.ranks = 2;
  few.ll_channels = 2;
  few.ll_piece = 1024;
  few.line_pairs = 16;
  few.bulk_piece = 4096;
  for (const messages::Layout& layout : {few, usual})
    for (const Kind kind : {Kind::ll, Kind::ll128, Kind::bulk})
      for (const unsigned blocks : {0u, 1u, 5u, 64u})
        for (const Bytes bytes : {Bytes{1}, Bytes{1025}, Bytes{65536}, Bytes{10000019}}) {
          messages::MessagePart part;
          part.bytes = bytes;
          messages::cut(part, layout, {kind, blocks});
          EXPECT_EQ(part.kind, kind);
          ASSERT_GT(part.piece, 0u);
          ASSERT_GT(part.blocks, 0u);
          EXPECT_LE(part.blocks, blocks == 0 ? 64 : blocks);
          EXPECT_LE(part.blocks, kind == Kind::ll ? layout.ll_channels : messages::channels);
          EXPECT_LE(part.piece, kind == Kind::ll      ? layout.ll_piece
                                : kind == Kind::ll128 ? layout.ll128_piece()
                                                      : layout.bulk_piece);
          EXPECT_GE(part.piece * ((bytes + part.piece - 1) / part.piece), bytes);
        }
}

TEST(JointWork, HasNoMoreBlocksThanMultiprocessors) {
  for (const std::uint32_t multiprocessors : {14u, 20u, 40u, 108u, 132u})
    for (std::uint32_t count = 1; count <= messages::most_joint; ++count) {
      messages::JointWork work;
      work.count = count;
      for (std::uint32_t part = 0; part < count; ++part) work.parts[part].blocks = messages::channels;
      work.most_blocks = messages::most_blocks_at_once(count, multiprocessors);
      EXPECT_LE(work.blocks(), multiprocessors) << count << " messages";
      EXPECT_GE(work.blocks(), count) << "each has one";
    }
  EXPECT_THROW(messages::most_blocks_at_once(15, 14), Error);
}

TEST(JointWork, TakesTheMessagesOfAPairThatDoNotFit) {
  messages::MessageWork work;
  work.give.blocks = work.take.blocks = messages::channels;
  work.give.peer = 1;
  EXPECT_TRUE(fits(work, 132));
  EXPECT_FALSE(fits(work, 108)) << "an A100";
  const messages::JointWork both = joint_of(work);
  EXPECT_EQ(both.count, 2u);
  EXPECT_EQ(both.gives, 1u);
  EXPECT_EQ(both.parts[0].peer, 1u);
  work.give.blocks = 0;
  EXPECT_EQ(joint_of(work).count, 1u);
  EXPECT_EQ(joint_of(work).gives, 0u);
}

}  // namespace
}  // namespace waywiser
