#include "waywiser/table/pack_by_part.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/table/made_up_table.hpp"
#include "waywiser/table/block_hash.hpp"
#include "waywiser/table/mix.hpp"

namespace waywiser {
namespace {

std::vector<std::uint64_t> random_hashes(std::size_t count) {
  std::vector<std::uint64_t> hashes(count);
  for (std::size_t i = 0; i < count; ++i) hashes[i] = spread(i + 1);
  return hashes;
}

TEST(TileSort, KeepsTheOrderWithinAPart) {
  for (const int parts : {1, 2, 3, 7, 8, 50, 5000})
    for (const std::size_t count : {0u, 1u, 5u, 16u, 4096u, 65536u}) {
      const auto hashes = random_hashes(count);
      std::vector<std::uint16_t> rows(count + TileSort::spare), wanted(count);
      for (std::size_t i = 0; i < count; ++i) wanted[i] = static_cast<std::uint16_t>(i);
      std::ranges::stable_sort(wanted, {}, [&](std::uint16_t row) { return part_of_hash(hashes[row], parts); });
      std::vector<std::uint32_t> ends(static_cast<std::size_t>(parts)), counts(ends.size());
      TileSort sort(parts);
      sort(hashes, rows.data(), ends);
      rows.resize(count);
      EXPECT_EQ(rows, wanted) << parts << ", " << count;
      for (const std::uint64_t hash : hashes) ++counts[static_cast<std::size_t>(part_of_hash(hash, parts))];
      for (std::size_t part = 0, end = 0; part < ends.size(); ++part) ASSERT_EQ(ends[part], end += counts[part]);
    }
}

// Numbers of all widths, booleans and texts, with nulls and without, of 0 to 60 bytes.
std::vector<MadeUpColumn> columns_of(std::int64_t rows) {
  std::mt19937 chance(5);
  const auto size = static_cast<std::size_t>(rows);
  std::vector<std::int64_t> keys(size), wide(4 * size);
  for (auto& each : keys) each = static_cast<std::int64_t>(chance() % 1000);
  for (auto& each : wide) each = static_cast<std::int64_t>(chance());
  std::vector<std::uint8_t> bits(size / 8 + 1);
  for (auto& each : bits) each = static_cast<std::uint8_t>(chance());
  std::vector<std::int32_t> offsets(size + 1);
  for (std::size_t i = 0; i < size; ++i) offsets[i + 1] = offsets[i] + static_cast<std::int32_t>(chance() % 61);
  const std::vector<std::int64_t> long_offsets(offsets.begin(), offsets.end());
  std::string text(static_cast<std::size_t>(offsets.back()), 'x');
  for (char& each : text) each = static_cast<char>('a' + chance() % 26);
  const auto validity = buffer_of(bits), numbers = buffer_of(wide), texts = bytes_of_values(text.data(), text.size());
  return {{"key", "l", rows, 0, 0, {nullptr, buffer_of(keys)}},
          {"byte", "c", rows, 0, 0, {nullptr, numbers}},
          {"short", "s", rows, -1, 0, {validity, numbers}},
          {"int", "i", rows, 0, 0, {nullptr, numbers}},
          {"decimal", "d:20,2", rows, 0, 0, {nullptr, numbers}},
          {"odd", "w:7", rows, 0, 0, {nullptr, numbers}},
          {"truth", "b", rows, -1, 0, {validity, validity}},
          {"text", "u", rows, -1, 0, {validity, buffer_of(offsets), texts}},
          {"long", "Z", rows, 0, 0, {nullptr, buffer_of(long_offsets), texts}}};
}

TEST(PackingByPart, IsWhatPackingMakesOfEachPart) {
  constexpr std::int64_t rows = 20'000;
  const auto columns = columns_of(rows);
  const TableSchema schema = parse_schema(MadeUpSchema(columns).get());
  ASSERT_TRUE(PackingByPart::serves(schema));
  const int keys[] = {0};
  const Batch whole = made_batch(columns, rows), slice = made_batch(columns, 9001, 777);
  for (const int parts : {1, 4, 9, 300})
    for (const Batch* batch : {&whole, &slice}) {
      RowsByPart by_part(parts);
      by_part.take(RowHashes(schema, batch->array(), keys), 3, batch->rows() - 10);
      const PackingByPart packing(schema, batch->array(), by_part);
      std::vector<std::shared_ptr<std::byte>> blocks;
      std::vector<std::byte*> into;
      constexpr std::align_val_t alignment{64};
      for (int part = 0; part < parts; ++part) {
        auto* const block = static_cast<std::byte*>(::operator new(packing.bytes(part) + 1, alignment));
        std::memset(block, 0xaa, packing.bytes(part) + 1);  // what lay there before
        blocks.emplace_back(block, [](std::byte* it) { ::operator delete(it, alignment); });
        into.push_back(part == 2 ? nullptr : block);
      }
      const auto hashes = packing.write(into);
      for (int part = 0; part < parts; ++part) {
        const auto at = static_cast<std::size_t>(part);
        const Packing alone(schema, batch->array(), by_part.of(part));
        ASSERT_EQ(packing.bytes(part), alone.bytes());
        for (std::size_t i = 0; i < schema.columns.size(); ++i) {
          EXPECT_EQ(packing.nodes(part)[i].nulls, alone.nodes()[i].nulls);
          EXPECT_EQ(packing.nodes(part)[i].bytes, alone.nodes()[i].bytes);
        }
        std::vector<std::byte> wanted(alone.bytes() + 1, std::byte{0xaa});
        if (part == 2) {
          EXPECT_EQ(blocks[at].get()[0], std::byte{0xaa});  // nothing was written
          continue;
        }
        alone.write(wanted.data());
        EXPECT_EQ(std::memcmp(blocks[at].get(), wanted.data(), wanted.size()), 0) << parts << ", " << part;
        EXPECT_EQ(hashes[at], hash_of_block(blocks[at].get(), packing.bytes(part)));
      }
    }
}

TEST(PackingByPart, DoesNotServeWhatHasColumnsInIt) {
  const auto serves = [](const MadeUpColumn& column) {
    return PackingByPart::serves(parse_schema(MadeUpSchema({column}).get()));
  };
  EXPECT_TRUE(serves({"a", "g"}));
  EXPECT_FALSE(serves({"a", "n"}));
  EXPECT_FALSE(serves({"a", "+l", 0, 0, 0, {}, {{"item", "u"}}}));
  EXPECT_FALSE(serves({"a", "c", 0, 0, 0, {}, {}, {{"", "l"}}}));
}

}  // namespace
}  // namespace waywiser
