// Ranks that are late, missing, or in unlike operations.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_ranks.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::fused {
namespace {

constexpr Method methods[] = {Method::ll, Method::one_shot, Method::two_shot, Method::ll128, Method::two_shot_ll128};

// Faults: gpus T
TEST(FusedOrder, WhoMissesARankTrapsAndNamesItAndItsOutputIsAsItWas) {
  for (const Method method : methods) {
    DisorderlyRanks group(3);
    const std::vector<float> in(20, 1);
    std::vector<float> out(20, 7);
    EXPECT_FALSE(all_reduce(group.terms(0, 1e-3), sum_of_floats(20), method, 5, in, out)) << name(method);
    EXPECT_EQ(out, std::vector<float>(20, 7)) << name(method);
    const auto failure = on_stream::failure_in(group.notices[0]);
    ASSERT_TRUE(failure) << name(method);
    EXPECT_EQ(failure->reason, block::Reason::late);
    EXPECT_GT(failure->peer, 0);
    EXPECT_LT(failure->peer, 3);
    const std::string why = on_stream::error_of(*failure, 0, {}, 1e-3, "").what();
    EXPECT_NE(why.find(" did not send within 1.00 ms in all_reduce #1 of 20 float32, sum"), std::string::npos) << why;
  }
}

// Two ranks whose calls differ. All methods, also different ones at the two ranks.
// Faults: gpus W
TEST(FusedOrder, RanksInUnlikeOperationsAreToldSoBeforeTheyHaveTheResult) {
  const auto other = [](auto change) {
    on_stream::Description description = sum_of_floats(20);
    change(description);
    return description;
  };
  const struct {
    on_stream::Description theirs;
    std::size_t count;
    const char* text;
  } calls[] = {
      {other([](on_stream::Description& it) { it.type = DataType::int32; }), 20, "all_reduce #1 of 20 int32, sum"},
      {other([](on_stream::Description& it) { it.op = ReduceOp::max; }), 20, "all_reduce #1 of 20 float32, max"},
      {other([](on_stream::Description& it) { it.operation = 3, it.root = 1; }), 20,
       "broadcast #1 of 20 float32, root 1"},
      {sum_of_floats(16), 16, "all_reduce #1 of 16 float32, sum"},
      {sum_of_floats(150), 150, "all_reduce #1 of 150 float32, sum"}};
  for (const auto& call : calls)
    for (const Method mine : methods)
      for (const Method theirs : methods) {
        if (mine != theirs && call.count == 20) continue;  // the method is the same where the size is
        DisorderlyRanks group(2);
        std::vector<float> in(20, 1), out(20, 7), their_in(call.count, 2), their_out(call.count, 7);
        std::array<bool, 2> ran{true, true};
        {
          std::jthread first([&] { ran[0] = all_reduce(group.terms(0, 60), sum_of_floats(20), mine, 1, in, out); });
          ran[1] = all_reduce(group.terms(1, 60), call.theirs, theirs, 2, their_in, their_out);
        }
        const std::string which = std::string(name(mine)) + " and " + std::string(name(theirs)) + ", " + call.text;
        EXPECT_EQ(ran, (std::array<bool, 2>{})) << which;
        EXPECT_EQ(out, std::vector<float>(20, 7)) << which;
        EXPECT_EQ(their_out, std::vector<float>(call.count, 7)) << which;
        const auto failure = on_stream::failure_in(group.notices[0]);
        ASSERT_TRUE(failure) << which;
        EXPECT_STREQ(
            on_stream::error_of(*failure, 0, {}, 60, "").what(),
            ("rank 0 is in all_reduce #1 of 20 float32, sum, but rank 1 is in " + std::string(call.text)).c_str());
      }
}

TEST(FusedOrder, PiecesOfUnlikeSizesAreUnlikeOperationsAndToldSo) {
  on_stream::Description whole = sum_of_floats(2000000), cut = whole;
  cut.cut = 21;
  EXPECT_NE(whole.word(), cut.word());
  EXPECT_EQ(on_stream::Description::of(cut.word()).cut, 21u);
  EXPECT_EQ(on_stream::Description::of(cut.word()).count, 2000000u);
  EXPECT_STREQ(on_stream::error_of({1, block::Reason::unlike, 5, whole.word(), cut.word()}, 0, {}, 60, "").what(),
               "rank 0 is in all_reduce #5 of 2000000 float32, sum as a whole, but rank 1 is in all_reduce #5 of "
               "2000000 float32, sum in pieces of less than 2M bytes");
}

TEST(FusedOrder, DescriptionsAreReadAsTheyWereWrittenAndHaveSignaturesOfTheirOwn) {
  std::set<std::uint64_t> words, signatures;
  for (std::uint32_t operation = 0; operation < static_cast<std::uint32_t>(collectives); ++operation)
    for (int type = 0; type < data_types; ++type)
      for (int op = 0; op < arithmetic_ops; ++op)
        for (int root = -1; root < static_cast<int>(block::max_ranks); ++root)
          for (const std::uint64_t count :
               {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{100}, std::uint64_t{1} << 42}) {
            const on_stream::Description it{operation, static_cast<DataType>(type), static_cast<ReduceOp>(op), root,
                                            count};
            const on_stream::Description read = on_stream::Description::of(it.word());
            ASSERT_EQ(read.word(), it.word());
            ASSERT_EQ(text(read, 3), text(it, 3));
            words.insert(it.word());
            signatures.insert(block::signature_of(it.word()));
          }
  EXPECT_EQ(words.size(), std::size_t{collectives} * data_types * arithmetic_ops * 9 * 4);
  EXPECT_EQ(signatures.size(), words.size());
  EXPECT_EQ(static_cast<std::uint32_t>(block::tag_of(5, *signatures.begin())), 5u);
}

// Halves of two different announcements do not make one.
TEST(FusedOrder, HalfAnAnnouncementSaysNothing) {
  const std::uint64_t a = sum_of_floats(20).word(), b = sum_of_floats(21).word();
  EXPECT_TRUE((block::Announcement{block::tag_of(7, block::signature_of(b)), b}.is_unlike(7, a)));
  EXPECT_FALSE((block::Announcement{block::tag_of(7, block::signature_of(a)), a}.is_unlike(7, a)));
  EXPECT_FALSE((block::Announcement{block::tag_of(6, block::signature_of(a)), b}.is_unlike(7, a)));
  EXPECT_FALSE((block::Announcement{block::tag_of(7, block::signature_of(a)), b}.is_unlike(7, a)));
  EXPECT_FALSE((block::Announcement{block::tag_of(6, block::signature_of(b)), b}.is_unlike(7, a)));
  EXPECT_FALSE((block::Announcement{}.is_unlike(7, a)));
}

// Counts polls of host memory, which GPUs serialise; the test sets the clock.
struct CountingBlock : block::HostBlock {
  explicit CountingBlock(const block::Notice& watched) : HostBlock(0, 1, 1), stop(&watched.stop) {}
  template <typename Word>
  Word acquire(const Word* flag) {
    asked += static_cast<const void*>(flag) == stop ? 1 : 0;
    return HostBlock::acquire(flag);
  }
  std::uint64_t nanoseconds() const { return now; }
  const std::uint32_t* stop;
  int asked = 0;
  std::uint64_t now = 1;
};

FusedWork nothing() { return FusedWork{}; }

TEST(FusedOrder, WhoWaitsLooksAtHostMemoryRarelyButDoes) {
  DisorderlyRanks group(2);
  const FusedArguments terms = group.terms(0, 20);
  const FusedWork work = nothing();
  CountingBlock block(group.notices[0]);
  OperationBody<CountingBlock> operation(block, terms, work);
  constexpr int looks = 6400;
  int look = 0;
  operation.wait([&] { return ++look < looks ? 2u : 0u; });
  EXPECT_EQ(block.asked, (looks - 1) / static_cast<int>(block::looks_at_host));
  on_stream::stop(group.notices[0]);
  EXPECT_THROW(operation.wait([&] { return 2u; }), Trap);
  const auto failure = on_stream::failure_in(group.notices[0]);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->peer, 1);
  EXPECT_STREQ(on_stream::error_of(*failure, 0, {}, 20, "rank 1 is gone").what(),
               "rank 0 has given up all_reduce #1 of 0 float64, sum while it waited for rank 1: rank 1 is gone");
}

// Faults: gpus L
TEST(FusedOrder, ARankThatIsLateWithinTheDeadlineIsNoErrorAndOneThatIsLaterIs) {
  DisorderlyRanks group(2);
  const FusedArguments terms = group.terms(0, 8);
  const FusedWork work = nothing();
  CountingBlock block(group.notices[0]);
  OperationBody<CountingBlock> operation(block, terms, work);
  int look = 0;
  operation.wait([&] {
    block.now = 1 + (++look > 2 ? 7'999'999'999u : 0u);
    return look < 9 ? 2u : 0u;
  });
  EXPECT_FALSE(on_stream::failure_in(group.notices[0]));
  look = 0;
  EXPECT_THROW(operation.wait([&] {
    block.now = 1 + (++look > 2 ? 8'000'000'000u : 0u);
    return look < 9 ? 2u : 0u;
  }),
               Trap);
  EXPECT_EQ(on_stream::failure_in(group.notices[0])->reason, block::Reason::late);
}

}  // namespace
}  // namespace waywiser::fused
