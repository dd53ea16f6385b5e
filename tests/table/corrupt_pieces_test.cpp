#include <gtest/gtest.h>

#include <numeric>

#include "tests/comm/test_ranks.hpp"
#include "tests/table/made_up_table.hpp"
#include "waywiser/table/block_hash.hpp"
#include "waywiser/table/mix.hpp"
#include "waywiser/table/piece_exchange.hpp"
#include "waywiser/table/schema_agreement.hpp"
#include "waywiser/table/shuffle.hpp"

namespace waywiser {
namespace {

const std::vector<MadeUpColumn> one_column{{"key", "l"}};

// What rank 0 sends to rank 1, which has part 1: three rows, and what ends the part.
struct SentPiece {
  PieceHead rows{PieceKind::rows, 1, 3, 64, 0}, end{PieceKind::end_of_part, 1, 3, 1, 0};
  std::vector<PackedNode> nodes{{3, 0, {0, 24, 0}}};
  std::shared_ptr<std::byte> block;

  explicit SentPiece(PieceBlocks& blocks) : block(blocks.to_send(64)) {
    auto* keys = reinterpret_cast<std::int64_t*>(block.get());
    std::iota(keys, keys + 8, 0);
    rows.hash = hash_of_block(block.get(), 64);
    end.hash = mixed(0, rows.hash);
  }
};

// Rank 0 takes part in a shuffle without one; what each rank throws.
Problems after_sending(const std::function<void(SentPiece&)>& change) {
  return TestRanks(2).in_processes([&](Group& group) {
    const MadeUpSchema schema(one_column);
    if (group.rank() == 1) {
      Shuffle shuffle(group, schema.get(), {2, 1 << 14, 1 << 10});
      shuffle.finish();
      require_that(shuffle.next() == 1 && shuffle.extract(1).front().rows() == 3, "other rows");
      require_that(!shuffle.next(), "a part is left");
      return static_cast<void>(group.barrier());
    }
    agreed_schema(group, [&] { return parse_schema(schema.get()); }, "a shuffle into 2 parts");
    PieceBlocks blocks(nullptr, host(0));
    PieceExchange exchange(std::move(*group.split(0, 0)), blocks, 1, 1 << 14, [](ArrivedPiece&&) {});
    SentPiece sent(blocks);
    change(sent);
    exchange.send(1, sent.rows, sent.nodes, sent.block);
    exchange.send(1, sent.end, {}, {});
    exchange.send(1, {PieceKind::end}, {}, {});
    while (!exchange.is_over()) exchange.wait();
    group.barrier();  // where rank 1 fails, this rank does too
  });
}

void expect_at_all(const std::string& words, const std::function<void(SentPiece&)>& change) {
  const Problems problems = after_sending(change);
  EXPECT_EQ(problems.size(), 2u) << words;
  for (const std::string& each : problems)
    EXPECT_NE(each.find("a shuffle of tables: from rank 0: " + words), std::string::npos) << each;
}

TEST(CorruptPieces, AreAnErrorAtAllRanks) {
  EXPECT_EQ(after_sending([](SentPiece&) {}), no_problems);
  expect_at_all("part 1 has another hash than what was sent",
                [](SentPiece& sent) { *sent.block.get() = std::byte{9}; });
  expect_at_all("part 1 has 3 rows, not 4", [](SentPiece& sent) { sent.end.rows = 4; });
  expect_at_all("part 0 belongs to another rank", [](SentPiece& sent) { sent.rows.part = 0; });
  expect_at_all("a piece of a table does not fit its schema: the bytes of a column",
                [](SentPiece& sent) { sent.nodes[0].bytes[1] = 32; });
  expect_at_all("something else than pieces of tables has come",
                [](SentPiece& sent) { sent.end.kind = PieceKind::end; });
}

}  // namespace
}  // namespace waywiser
