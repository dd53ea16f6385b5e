#include "waywiser/table/pack.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <utility>

#include "tests/base/error_of.hpp"
#include "tests/table/made_up_table.hpp"
#include "waywiser/table/mix.hpp"
#include "waywiser/table/row_hash.hpp"
#include "waywiser/table/rows_by_part.hpp"
#include "waywiser/table/unpack.hpp"

namespace waywiser {
namespace {

struct Packed {
  Packed(const TableSchema& with, const Batch& batch, const RowSet& rows) : schema(with) {
    const Packing packing(schema, batch.array(), rows);
    nodes = packing.nodes(), bytes = packing.bytes();
    block = {new std::byte[bytes], std::default_delete<std::byte[]>()};
    packing.write(block.get());
    count = rows.size();
  }
  Batch unpacked() const { return unpack(schema, count, nodes, block, bytes); }

  TableSchema schema;
  std::vector<PackedNode> nodes;
  std::shared_ptr<std::byte> block;
  Bytes bytes = 0;
  std::int64_t count = 0;
};

TableSchema schema_of(const std::vector<MadeUpColumn>& columns) { return parse_schema(MadeUpSchema(columns).get()); }

TEST(Pack, RowsOfSlicesComeBack) {
  const auto columns = KeysAndTexts::columns({3, 7, 14, 4, 9, 21, 5, 0, 8, 7});
  const TableSchema schema = schema_of(columns);
  const Batch whole = made_batch(columns, 10), slice = made_batch(columns, 6, 2);
  const auto keys = [&](const Batch& batch, const RowSet& rows) {
    return KeysAndTexts::keys_of(Packed(schema, batch, rows).unpacked());
  };
  using Keys = std::vector<std::int64_t>;
  EXPECT_EQ(keys(whole, RowSet(0, 10)), (Keys{3, 7, 14, 4, 9, 21, 5, 0, 8, 7}));
  EXPECT_EQ(keys(whole, RowSet(Keys{9, 0, 5, 5})), (Keys{7, 3, 21, 21}));
  EXPECT_EQ(keys(whole, RowSet(4, 0)), Keys{});
  EXPECT_EQ(keys(slice, RowSet(1, 3)), (Keys{4, 9, 21}));
  EXPECT_EQ(keys(slice, RowSet(Keys{5, 0})), (Keys{0, 14}));
}

TEST(Pack, ABatchOutlivesTheBlocksOtherOwners) {
  const auto columns = KeysAndTexts::columns({1, 2, 7});
  std::weak_ptr<std::byte> block;
  Batch batch;
  {
    const Packed packed(schema_of(columns), made_batch(columns, 3), RowSet(0, 3));
    block = packed.block;
    batch = packed.unpacked();
  }
  EXPECT_EQ(KeysAndTexts::keys_of(batch), (std::vector<std::int64_t>{1, 2, 7}));
  batch = Batch();
  EXPECT_TRUE(block.expired());
}

TEST(Pack, DictionariesBringWhatTheRowsUse) {
  const std::vector<std::int8_t> indices = {2, 0, 2, 1};
  const std::vector<std::int64_t> meant = {10, 11, 12};
  const std::vector<MadeUpColumn> columns = {
      {"d", "c", 4, 0, 0, {nullptr, buffer_of(indices)}, {}, {{"", "l", 3, 0, 0, {nullptr, buffer_of(meant)}}}}};
  const Batch back =
      Packed(schema_of(columns), made_batch(columns, 4), RowSet(std::vector<std::int64_t>{0, 3, 2})).unpacked();
  const ArrowArray& column = *back.array().children[0];
  ASSERT_EQ(column.dictionary->length, 2);  // 11 and 12
  const auto* index = static_cast<const std::int8_t*>(column.buffers[1]);
  EXPECT_EQ(std::vector<int>(index, index + 3), (std::vector<int>{1, 0, 1}));
  EXPECT_EQ(static_cast<const std::int64_t*>(column.dictionary->buffers[1])[1], 12);
}

TEST(Pack, WhatDoesNotFitTheSchemaIsNoBatch) {
  const auto columns = KeysAndTexts::columns({1, 2, 7});
  Packed packed(schema_of(columns), made_batch(columns, 3), RowSet(0, 3));
  const auto said = [&] { return error_of([&] { packed.unpacked(); }); };
  const std::string head = "a piece of a table does not fit its schema: ";
  const auto with = [&](auto change) {
    Packed good = packed;
    change();
    std::string words = said();
    packed = std::move(good);
    return words;
  };
  EXPECT_EQ(with([&] { packed.nodes.pop_back(); }), head + "the number of columns");
  EXPECT_EQ(with([&] { packed.nodes[0].rows = 4; }), head + "the number of rows");
  EXPECT_EQ(with([&] { packed.nodes[1].nulls = 4; }), head + "the number of rows");
  EXPECT_EQ(with([&] { packed.nodes[0].bytes[1] = 1 << 20; }), head + "the bytes of a column");
  EXPECT_EQ(with([&] { packed.nodes[1].bytes[2] = ~std::uint64_t{0}; }), head + "the bytes of a column");
  EXPECT_EQ(with([&] { packed.nodes[1].bytes[2] -= 1; }), head + "the bytes of strings");
  EXPECT_EQ(with([&] { packed.bytes += 64; }), head + "the bytes of all columns");
  auto* offsets = reinterpret_cast<std::int32_t*>(packed.block.get() + 128);  // behind keys and validity
  const std::int32_t second = std::exchange(offsets[1], 99);
  EXPECT_EQ(said(), head + "offsets do not ascend");
  offsets[1] = second;
  EXPECT_EQ(said(), "no error");
}

TEST(Pack, EqualKeysHaveEqualHashes) {
  const auto hashes = [](const MadeUpColumn& column) {
    const std::vector<MadeUpColumn> columns{column};
    const int keys[] = {0};
    const TableSchema schema = schema_of(columns);
    const Batch batch = made_batch(columns, column.rows);
    std::vector<std::uint64_t> of_rows(static_cast<std::size_t>(column.rows));
    RowHashes(schema, batch.array(), keys).write(0, of_rows);
    return of_rows;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> doubles = {0.0, -0.0, nan, -nan, 1.0, 2.0};
  const auto of_doubles = hashes({"f", "g", 6, 0, 0, {nullptr, buffer_of(doubles)}});
  EXPECT_EQ(of_doubles[0], of_doubles[1]);
  EXPECT_EQ(of_doubles[2], of_doubles[3]);
  EXPECT_NE(of_doubles[4], of_doubles[5]);
  const std::vector<std::int64_t> values = {7, 8};
  const std::vector<std::uint8_t> indices = {1, 0, 1};
  const auto plain = hashes({"v", "l", 2, 0, 0, {nullptr, buffer_of(values)}});
  const auto meant = hashes(
      {"d", "C", 3, 0, 0, {nullptr, buffer_of(indices)}, {}, {{"", "l", 2, 0, 0, {nullptr, buffer_of(values)}}}});
  EXPECT_EQ(meant, (std::vector<std::uint64_t>{plain[1], plain[0], plain[1]}));
  EXPECT_EQ(error_of([&] { hashes({"s", "+s", 0, 0, 0, {nullptr}}); }), "column 's' is no key: it is struct<>");
}

TEST(Pack, PartsOfHashesAreEven) {
  std::vector<int> counts(7);
  for (std::uint64_t i = 0; i < 7000; ++i) ++counts[static_cast<std::size_t>(part_of_hash(spread(i), 7))];
  for (const int count : counts) EXPECT_NEAR(count, 1000, 150);
}

TEST(ColumnType, SaysWhatItIs) {
  const auto words = [](const MadeUpColumn& column) { return schema_of({column}).columns.front().words(); };
  EXPECT_EQ(words({"a", "tsu:Europe/Paris"}), "timestamp[u, Europe/Paris]");
  EXPECT_EQ(words({"a", "d:10,2,256"}), "decimal[10,2,256]");
  EXPECT_EQ(words({"a", "+l", 0, 0, 0, {}, {{"item", "u"}}}), "list<item: string>");
  EXPECT_EQ(words({"a", "s", 0, 0, 0, {}, {}, {{"", "U"}}}), "dictionary<int16 to large_string>");
  EXPECT_EQ(words({"a", "+w:3", 0, 0, 0, {}, {{"item", "f"}}}), "fixed_list[3]<item: float32>");
  EXPECT_EQ(schema_of({{"a", "d:10,2"}}).columns[0].width, 16u);
  for (const char* format : {"d:1", "d:1,2,77", "w:x", "tsq:", "+us:0", "?", ""})
    EXPECT_EQ(error_of([&] { schema_of({{"a", format}}); }),
              "column 'a': its type, '" + std::string(format) + "' in Arrow, is not served");
}

TEST(Pack, RowsComeByPartInTheirOrder) {
  std::vector<std::int64_t> values(5000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int64_t>(i % 97);
  const std::vector<MadeUpColumn> columns{{"v", "l", 5000, 0, 0, {nullptr, buffer_of(values)}}};
  const int keys[] = {0};
  const TableSchema schema = schema_of(columns);
  const Batch slice = made_batch(columns, 4000, 1000);
  const RowHashes hashes(schema, slice.array(), keys);
  std::vector<std::uint64_t> of_rows(4000);
  hashes.write(0, of_rows);
  RowsByPart by_part(5);
  for (const std::int64_t first : {0, 700}) {  // the second time fewer
    by_part.take(hashes, first, 3300 - 2 * first);
    std::vector<std::vector<std::int64_t>> wanted(5), found(5);
    for (std::int64_t row = first; row < 3300 - first; ++row)
      wanted[static_cast<std::size_t>(part_of_hash(of_rows[static_cast<std::size_t>(row)], 5))].push_back(row);
    for (int part = 0; part < 5; ++part)
      for (std::int64_t i = 0; i < by_part.of(part).size(); ++i)
        found[static_cast<std::size_t>(part)].push_back(by_part.of(part)[i]);
    EXPECT_EQ(found, wanted);
  }
}

}  // namespace
}  // namespace waywiser
