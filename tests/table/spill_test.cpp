#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/table/made_up_table.hpp"
#include "waywiser/table/refused_shuffle.hpp"
#include "waywiser/table/shuffle.hpp"
#include "waywiser/table/spilled_pieces.hpp"

namespace waywiser {
namespace {

namespace fs = std::filesystem;

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::recursive_directory_iterator(folder), {}));
}

TEST(Spill, PiecesComeBackAndTheFolderGoes) {
  const fs::path parent = testing::TempDir();
  fs::path inside;
  {
    const SpillFolder folder(parent);
    inside = folder.path();
    SpilledPieces pieces(inside / "0");
    std::vector<std::byte> one(70000, std::byte{1}), two(3, std::byte{2}), back(70000);
    EXPECT_EQ(pieces.add({one.data(), one.size(), host(0)}), 0u);
    EXPECT_EQ(pieces.add({nullptr, 0, host(0)}), 70000u);
    EXPECT_EQ(pieces.add({two.data(), two.size(), host(0)}), 70000u);
    pieces.read(70000, {back.data(), 3, host(0)});
    EXPECT_EQ(back[2], std::byte{2});
    pieces.read(0, {back.data(), back.size(), host(0)});
    EXPECT_EQ(back, one);
    EXPECT_EQ(files_in(inside), 1u);
  }
  EXPECT_FALSE(fs::exists(inside));
  EXPECT_NE(error_of([] { SpillFolder("/nowhere"); }).find("/nowhere/waywiser-spill-"), std::string::npos);
}

TEST(Spill, WhatIsAboveTheMemoryIsInFilesUntilItIsExtracted) {
  const SpillFolder folder(testing::TempDir());
  EXPECT_EQ(TestRanks(3).in_processes([&](Group& group) {
    const MadeUpSchema schema(KeysAndTexts::columns({}));
    ShuffleOptions options{6, 1 << 16, 1 << 12};
    options.memory = 1 << 15, options.spill = folder.path();
    std::vector<std::int64_t> keys(20000);
    std::iota(keys.begin(), keys.end(), std::int64_t{100000} * group.rank());
    const int by_key[] = {0};
    Shuffle shuffle(group, schema.get(), options);
    shuffle.insert(made_batch(KeysAndTexts::columns(keys), static_cast<std::int64_t>(keys.size())), by_key);
    shuffle.finish();
    std::int64_t told[] = {0, 0};
    while (const auto part = shuffle.next())
      for (const Batch& each : shuffle.extract(*part))
        for (const std::int64_t key : KeysAndTexts::keys_of(each)) ++told[0], told[1] += key;
    group.all_reduce(std::span<const std::int64_t>(told), std::span(told));
    require_that(told[0] == 60000, "rows are lost");
    require_that(told[1] == 3 * (19999ll * 10000) + 20000ll * 300000, "other rows");
    const ShuffleCounts counts = shuffle.counts();
    Bytes come = 0;
    for (const ShuffleCounts::Peer& peer : counts.peers) come += peer.bytes_in;
    require_that(counts.spilled + options.memory + options.piece >= come && counts.spilled <= come, "the memory");
  }),
            no_problems);
  EXPECT_EQ(files_in(folder.path()), 0u);
}

TEST(Spill, OptionsThatMakeNoSenseAreRefused) {
  ShuffleOptions options{1, 1 << 16, 1 << 12};
  options.memory = 1 << 15;
  const std::string together = "a limit of memory and a folder for what is above it come together";
  EXPECT_EQ(error_of([&] { check_options(options); }), "a shuffle of tables: " + together);
  options.spill = "/tmp", options.place = gpu(0);
  EXPECT_EQ(error_of([&] { check_options(options); }), "a shuffle of tables: what lies on GPUs does not go to files");
  options.memory = 0, options.place = host(0);
  EXPECT_EQ(error_of([&] { check_options(options); }), "a shuffle of tables: " + together);
}

}  // namespace
}  // namespace waywiser
