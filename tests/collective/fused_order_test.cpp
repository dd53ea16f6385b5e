#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "tests/collective/disorderly_block.hpp"
#include "waywiser/collective/fused/ll128_body.hpp"
#include "waywiser/collective/fused/ll_body.hpp"
#include "waywiser/collective/fused/push_body.hpp"
#include "waywiser/collective/fused/works.hpp"
#include "waywiser/collective/on_stream/description.hpp"
#include "waywiser/collective/on_stream/failure.hpp"
#include "waywiser/kernels/block/host_block.hpp"

namespace waywiser::fused {
namespace {

constexpr unsigned blocks = 2, threads = 4;
constexpr int operations = 22;

// The ranks on plain memory; every block of every operation is one thread.
struct Ranks {
  explicit Ranks(unsigned ranks, std::uint64_t bulk_bytes = 4096, std::uint64_t line_pairs = 16)
      : layout{ranks, 1024, bulk_bytes, line_pairs}, states(ranks), notices(ranks), tables(ranks) {
    for (unsigned rank = 0; rank < ranks; ++rank) landings.emplace_back(layout.bytes() / sizeof(Vector16) + 1);
  }

  FusedArguments terms(unsigned rank, double deadline) {
    FusedArguments terms{{},
                         &states[rank],
                         &notices[rank],
                         tables[rank].data(),
                         layout,
                         rank,
                         static_cast<std::uint64_t>(deadline * 1e9),
                         most_blocks / blocks,
                         most_blocks % blocks};
    for (unsigned peer = 0; peer < layout.ranks; ++peer)
      terms.landing[peer] = reinterpret_cast<std::byte*>(landings[peer].data());
    return terms;
  }

  LandingLayout layout;
  std::vector<FusedState> states;
  std::vector<block::Notice> notices;
  std::vector<std::array<block::Exposed, std::size_t{block::exposed_slots + 1} * block::max_ranks>> tables;
  std::vector<std::vector<Vector16>> landings;
};

void run_block(DisorderlyBlock block, Method method, const FusedArguments& terms, const FusedWork& work) {
  if (method == Method::ll)
    LlBody<float, block::max_ranks, false, DisorderlyBlock>(block, terms, work).run();
  else if (method == Method::one_shot)
    PushBody<float, block::max_ranks, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else if (method == Method::two_shot)
    PushBody<float, block::max_ranks, false, DisorderlyBlock>(block, terms, work).run_two_shot();
  else if (method == Method::ll128)
    Ll128Body<float, block::max_ranks, 1, false, DisorderlyBlock>(block, terms, work).run_one_shot();
  else
    Ll128Body<float, block::max_ranks, 2, false, DisorderlyBlock>(block, terms, work).run_two_shot();
}

std::size_t count_of(int operation) { return 1 + static_cast<std::size_t>(operation * 37) % 150; }
Method method_of(int operation) { return static_cast<Method>(operation * 5 % 11 % 5); }
float value(unsigned rank, int operation, std::size_t i) {
  return static_cast<float>(100 * operation + static_cast<int>(i % 50)) + static_cast<float>(rank);
}

// False: a block has trapped.
// False if a block trapped.
bool run(const FusedArguments& terms, const FusedWork& work, Method method, std::uint64_t seed) {
  std::atomic<bool> trapped = false;
  {
    std::vector<std::jthread> grid;
    for (unsigned block = 0; block < blocks; ++block)
      grid.emplace_back([&, block] {
        try {
          run_block(DisorderlyBlock(block, blocks, is_ll128(method) ? 64 : threads, seed + block * 1000), method, terms,
                    work);
        } catch (const Trap&) {
          trapped = true;
        }
      });
  }
  return !trapped;
}

Buffers buffers_of(std::span<const float> in, std::span<float> out, const on_stream::Description& description,
                   unsigned slot = 0) {
  return {reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()), out.size() * 4, slot,
          description.word()};
}

bool all_reduce(const FusedArguments& terms, const on_stream::Description& description, Method method,
                std::uint64_t seed, std::span<const float> in, std::span<float> out, unsigned slot = 0) {
  CollectiveCall call;
  call.operation = Collective::all_reduce;
  call.ranks = static_cast<int>(terms.layout.ranks);
  const Buffers buffers = buffers_of(in, out, description, slot);
  return run(terms, works(call, DataType::float32, ReduceOp::sum, buffers, method, 1024).at(0), method, seed);
}

// Only the root's `in` has data.
void broadcast_in_two_shots(const FusedArguments& terms, int operation, int root, std::span<const float> in,
                            std::span<float> out) {
  CollectiveCall call;
  call.operation = Collective::broadcast;
  call.ranks = static_cast<int>(terms.layout.ranks);
  call.root = root;
  const on_stream::Description description{static_cast<std::uint32_t>(Collective::broadcast), DataType::float32,
                                           ReduceOp::sum, root, out.size()};
  const Buffers buffers = buffers_of(in, out, description);
  const std::uint64_t seed = terms.rank * 100000 + static_cast<unsigned>(operation);
  run(terms, works(call, DataType::float32, ReduceOp::sum, buffers, Method::two_shot, 1024).at(0), Method::two_shot,
      seed);
}

on_stream::Description sum_of_floats(std::size_t count) {
  return {static_cast<std::uint32_t>(Collective::all_reduce), DataType::float32, ReduceOp::sum, -1, count};
}

void all_reduce(const FusedArguments& terms, int operation, Method method, std::span<const float> in,
                std::span<float> out, unsigned slot = 0) {
  const std::uint64_t seed = terms.rank * 100000 + static_cast<unsigned>(operation);
  all_reduce(terms, sum_of_floats(in.size()), method, seed, in, out, slot);
}

float sum_of(unsigned ranks, int operation, std::size_t i) {
  float sum = 0;
  for (unsigned rank = 0; rank < ranks; ++rank) sum += value(rank, operation, i);
  return sum;
}

void expect_right_results(Ranks& group) {
  const auto ranks = static_cast<unsigned>(group.layout.ranks);
  std::vector<int> wrong(ranks, 0);
  {
    std::vector<std::jthread> all;
    for (unsigned rank = 0; rank < ranks; ++rank)
      all.emplace_back([&, rank] {
        const FusedArguments terms = group.terms(rank, 20);
        for (int operation = 0; operation < operations; ++operation) {
          std::vector<float> in(count_of(operation)), out(in.size());
          for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(rank, operation, i);
          all_reduce(terms, operation, method_of(operation), in, out);
          for (std::size_t i = 0; i < in.size(); ++i) wrong[rank] += out[i] != sum_of(ranks, operation, i);
        }
      });
  }
  EXPECT_EQ(wrong, std::vector<int>(ranks, 0)) << ranks << " ranks";
  for (const FusedState& state : group.states)
    EXPECT_EQ(state.progress / most_blocks, static_cast<std::uint64_t>(operations));
  for (const block::Notice& notice : group.notices) EXPECT_FALSE(on_stream::failure_in(notice));
}

TEST(FusedOrder, ResultsAreRightWhenStoresArriveLateAndInAnyOrder) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    Ranks group(ranks);
    expect_right_results(group);
  }
}

// Each rank is the root in turn, with its data in its output or elsewhere.
TEST(FusedOrder, BroadcastsInTwoShotsAreRightWhenStoresArriveLateAndInAnyOrder) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    Ranks group(ranks);
    std::vector<int> wrong(ranks, 0);
    {
      std::vector<std::jthread> all;
      for (unsigned rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
          const FusedArguments terms = group.terms(rank, 20);
          for (int operation = 0; operation < operations; ++operation) {
            const auto root = static_cast<unsigned>(operation) % ranks;
            std::vector<float> out(count_of(operation), -1), apart(out.size());
            std::vector<float>& in = operation % 2 == 0 ? out : apart;
            for (std::size_t i = 0; rank == root && i < in.size(); ++i) in[i] = value(root, operation, i);
            broadcast_in_two_shots(terms, operation, static_cast<int>(root), rank == root ? in : std::span<float>(),
                                   out);
            for (std::size_t i = 0; i < out.size(); ++i) wrong[rank] += out[i] != value(root, operation, i);
          }
        });
    }
    EXPECT_EQ(wrong, std::vector<int>(ranks, 0)) << ranks << " ranks";
    for (const block::Notice& notice : group.notices) EXPECT_FALSE(on_stream::failure_in(notice));
  }
}

// Operations in one shot also use the places of the second shot.
TEST(FusedOrder, ResultsAreRightWhereTheMemoryIsOnlyJustLargeEnough) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    Ranks group(ranks, 304 * ranks, (3 * ranks + 2) / 2);
    expect_right_results(group);
  }
}

// Each rank's outputs lie at different places, in one of two exposed memories or in neither. One rank does not reach
// the second memory of its neighbour.
class ExposedOutputs {
 public:
  static constexpr std::size_t vectors = 128;  // of a memory
  static constexpr float untouched = -77;

  explicit ExposedOutputs(Ranks& group) : group_(group) {
    for (unsigned rank = 0; rank < group.layout.ranks; ++rank) {
      memories_.emplace_back(3 * vectors * 4);
      for (unsigned slot = 1; slot < 3; ++slot)
        for (unsigned peer = 0; peer < group.layout.ranks; ++peer)
          if (reaches(peer, rank, slot))
            group.tables[peer][slot * block::max_ranks + rank] = {
                reinterpret_cast<std::byte*>(memories_[rank].data() + slot * vectors * 4), vectors * 16};
    }
  }

  bool right(unsigned rank, int operation) {
    const unsigned ranks = group_.layout.ranks, slot = (rank + static_cast<unsigned>(operation)) % 3;
    const std::size_t count = operation % 4 == 3 ? count_of(operation) : (count_of(operation) + 3) / 4 * 4;
    const std::size_t at = slot * vectors * 4 + std::size_t{rank * 7 + static_cast<unsigned>(operation) * 3} % 80 * 4;
    const Method method = operation % 5 == 4 ? Method::one_shot : Method::two_shot;
    std::vector<float>& memory = memories_[rank];
    std::ranges::fill(memory, untouched);
    const std::span out = std::span(memory).subspan(at, count);
    std::vector<float> apart(count);
    const std::span in = operation % 2 == 0 ? out : std::span(apart);
    for (std::size_t i = 0; i < count; ++i) in[i] = value(rank, operation, i);
    const std::span<float> landed = landing(rank, operation);
    std::ranges::fill(landed, untouched);
    all_reduce(group_.terms(rank, 20), operation, method, in, out, slot);
    for (std::size_t i = 0; i < memory.size(); ++i)
      if (memory[i] != (i < at || i >= at + count ? untouched : sum_of(ranks, operation, i - at))) return false;
    for (unsigned peer = 0; peer < ranks; ++peer) {
      const std::size_t part = ((count + 3) / 4 + ranks - 1) / ranks * 4;
      if (peer == rank || peer * part >= count) continue;
      const bool lands = method == Method::two_shot && (slot == 0 || count % 4 != 0 || !reaches(peer, rank, slot));
      if ((landed[peer * part] != untouched) != lands) return false;
    }
    return true;
  }

 private:
  bool reaches(unsigned peer, unsigned rank, unsigned slot) const {
    return slot == 1 || peer != 0 || rank != 1 % group_.layout.ranks;
  }
  // The data that the others put there in the second shot.
  std::span<float> landing(unsigned rank, int operation) {
    const auto turn = static_cast<unsigned>(operation + 1) % 2;
    auto* begin = reinterpret_cast<std::byte*>(group_.landings[rank].data()) + group_.layout.bulk(turn, 1);
    return {reinterpret_cast<float*>(begin), group_.layout.bulk_bytes / 4};
  }

  Ranks& group_;
  std::vector<std::vector<float>> memories_;
};

TEST(FusedOrder, ExposedOutputsGetTheirSumsAndNothingElse) {
  for (const unsigned ranks : {2u, 3u, 4u}) {
    Ranks group(ranks);
    ExposedOutputs outputs(group);
    std::vector<std::vector<int>> wrong(ranks);
    {
      std::vector<std::jthread> all;
      for (unsigned rank = 0; rank < ranks; ++rank)
        all.emplace_back([&, rank] {
          for (int operation = 0; operation < 30; ++operation)
            if (!outputs.right(rank, operation)) wrong[rank].push_back(operation);
        });
    }
    EXPECT_EQ(wrong, std::vector<std::vector<int>>(ranks)) << ranks << " ranks";
  }
}

TEST(FusedOrder, APlaceIsInABoundedSlotAndOffset) {
  const block::OutputPlace place =
      block::OutputPlace::of(block::OutputPlace{block::exposed_slots, (std::uint64_t{1} << 32) - 16}.word());
  EXPECT_EQ(place.slot, block::exposed_slots);
  EXPECT_EQ(place.offset, (std::uint64_t{1} << 32) - 16);
  for (const block::OutputPlace none : {block::OutputPlace{0, 16}, block::OutputPlace{block::exposed_slots + 1, 16},
                                        block::OutputPlace{1, 24}, block::OutputPlace{1, std::uint64_t{1} << 32}})
    EXPECT_EQ(none.word(), 0u);
  EXPECT_LE(block::OutputPlace::of(~0u).slot, block::exposed_slots);
  Vector16 memory[2];
  const block::Exposed exposed{reinterpret_cast<std::byte*>(memory), sizeof memory};
  EXPECT_TRUE(exposed.holds(16, 16));
  EXPECT_FALSE(exposed.holds(16, 17));
  EXPECT_FALSE(exposed.holds(48, 0));
  EXPECT_FALSE(exposed.holds(~std::uint64_t{15}, 32));
  EXPECT_FALSE((block::Exposed{nullptr, 64}.holds(0, 16)));
}

constexpr Method methods[] = {Method::ll, Method::one_shot, Method::two_shot, Method::ll128, Method::two_shot_ll128};

// Faults: gpus T
TEST(FusedOrder, WhoMissesARankTrapsAndNamesItAndItsOutputIsAsItWas) {
  for (const Method method : methods) {
    Ranks group(3);
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
        Ranks group(2);
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
  Ranks group(2);
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
  Ranks group(2);
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
