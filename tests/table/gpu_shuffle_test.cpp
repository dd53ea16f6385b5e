#include <gtest/gtest.h>

#include <numeric>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/table/made_up_table.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/stream.hpp"
#include "waywiser/table/shuffle.hpp"

namespace waywiser {
namespace {

using Numbers = std::vector<std::int64_t>;

// Tables in the memory of one rank's GPU: int64 "key", bool "odd", int32 "half" that is null where the key is odd, and
// string "text" if wanted.
class TablesOnGpu {
 public:
  TablesOnGpu(Group& group, bool with_text)
      : platform_(group.platform()),
        place_(gpu_of_rank(group)),
        stream_(platform_->open_stream(place_)),
        with_text_(with_text) {}

  Place place() const { return place_; }
  std::vector<MadeUpColumn> columns(const Numbers& keys) const {
    const auto rows = static_cast<std::int64_t>(keys.size());
    std::vector<std::uint8_t> odd(keys.size() / 8 + 1), even(keys.size() / 8 + 1);
    std::vector<std::int32_t> half, offsets{0};
    for (std::size_t i = 0; i < keys.size(); ++i) {
      auto& bits = keys[i] % 2 == 0 ? even : odd;
      bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | 1u << (i % 8));
      half.push_back(static_cast<std::int32_t>(keys[i] / 2));
      offsets.push_back(static_cast<std::int32_t>(i + 1));
    }
    std::vector<MadeUpColumn> all = {{"key", "l", rows, 0, 0, {nullptr, on_gpu(keys)}},
                                     {"odd", "b", rows, 0, 0, {nullptr, on_gpu(odd)}},
                                     {"half", "i", rows, -1, 0, {on_gpu(even), on_gpu(half)}}};
    const std::vector<std::uint8_t> text(keys.size(), 'x');
    if (with_text_) all.push_back({"text", "u", rows, 0, 0, {nullptr, on_gpu(offsets), on_gpu(text)}});
    return all;
  }
  Batch batch(const Numbers& keys) const { return made_batch(columns(keys), static_cast<std::int64_t>(keys.size())); }

  // The keys of a batch, whose other values must be theirs.
  Numbers keys_of(const Batch& batch) const {
    const auto rows = static_cast<std::size_t>(batch.rows());
    const auto values = [&]<typename T>(int column, int buffer, std::size_t count, T) {
      std::vector<T> found(count);
      const void* from = batch.array().children[column]->buffers[buffer];
      stream_->copy(Region{reinterpret_cast<std::byte*>(found.data()), count * sizeof(T), host(0)},
                    ConstRegion{static_cast<const std::byte*>(from), count * sizeof(T), place_});
      stream_->synchronize(Deadline::in(20));
      return found;
    };
    const auto keys = values(0, 1, rows, std::int64_t{});
    const auto odd = values(1, 1, (rows + 7) / 8, std::uint8_t{}), even = values(2, 0, (rows + 7) / 8, std::uint8_t{});
    const auto half = values(2, 1, rows, std::int32_t{});
    for (std::size_t i = 0; i < rows; ++i) {
      const bool is_odd = keys[i] % 2 != 0;
      require_that(((odd[i / 8] >> (i % 8)) & 1) == is_odd && ((even[i / 8] >> (i % 8)) & 1) != is_odd, "other bits");
      require_that(half[i] == keys[i] / 2, "another half");
    }
    if (with_text_) {
      const auto offsets = values(3, 1, rows + 1, std::int32_t{});
      require_that(offsets.back() == static_cast<std::int32_t>(rows), "other offsets");
      require_that(values(3, 2, rows, std::uint8_t{}) == std::vector<std::uint8_t>(rows, 'x'), "another text");
    }
    return keys;
  }

 private:
  template <typename T>
  std::shared_ptr<void> on_gpu(const std::vector<T>& values) const {
    const Bytes bytes = values.size() * sizeof(T);
    const auto memory = std::make_shared<Memory>(platform_->allocate(place_, bytes + 1, Allocation::gpu));
    stream_->copy(memory->region().slice(0, bytes),
                  ConstRegion{reinterpret_cast<const std::byte*>(values.data()), bytes, host(0)});
    stream_->synchronize(Deadline::in(20));
    return {memory, memory->region().data};
  }

  std::shared_ptr<Platform> platform_;
  Place place_;
  std::unique_ptr<Stream> stream_;
  bool with_text_;
};

Numbers numbers_from(std::int64_t first, std::size_t count) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

Problems on_virtual_gpus(const TestRanks::Body& body, int size = 3) {
  TestRanks ranks(size);
  ranks.virtual_gpus = size;
  return ranks.in_processes(body);
}

TEST(GpuShuffle, EachPartComesToTheGpuOfItsOwner) {
  for (int size = 1; size <= 8; ++size) {
    const bool with_text = size % 3 == 0;
    EXPECT_EQ(on_virtual_gpus(
                  [&](Group& group) {
                    const TablesOnGpu tables(group, with_text);
                    const MadeUpSchema schema(tables.columns({}));
                    ShuffleOptions options{0, 1 << 15, 1 << 12};
                    options.place = tables.place();
                    Shuffle shuffle(group, schema.get(), options);
                    for (int part = 0; part < size; ++part) {
                      shuffle.insert(tables.batch(numbers_from(std::int64_t{1000} * group.rank(), 1000)), part);
                      shuffle.insert(tables.batch({}), part);
                      shuffle.insert(tables.batch({7}), part);
                    }
                    shuffle.finish();
                    require_that(shuffle.next() == group.rank(), "another part");
                    Numbers found, wanted;
                    for (const Batch& each : shuffle.extract(group.rank()))
                      for (const std::int64_t key : tables.keys_of(each)) found.push_back(key);
                    for (int rank = 0; rank < size; ++rank) {
                      for (const std::int64_t key : numbers_from(std::int64_t{1000} * rank, 1000))
                        wanted.push_back(key);
                      wanted.push_back(7);
                    }
                    require_that(found == wanted, "other rows");
                    require_that(!shuffle.next(), "a part is left");
                    const ShuffleCounts counts = shuffle.counts();
                    require_that((counts.peers[0].pieces_out > 2) == !with_text,
                                 "tables with offsets are not cut, others are");
                    if (size == 1) return;
                    const PathCounts& path = counts.peers[static_cast<std::size_t>((group.rank() + 1) % size)].path;
                    require_that(path.ways.size() == 1 && path.ways[0].way == "direct",
                                 "another way than into the GPU");
                    require_that(path.seconds_out > 0 && path.seconds_in > 0, "the time of a path");
                    if (!with_text)
                      require_that(counts.most_under_way <= options.budget + 2 * options.piece, "the budget");
                  },
                  size),
              no_problems)
        << size;
  }
}

TEST(GpuShuffle, WhatCopiesCannotDoIsRefused) {
  EXPECT_EQ(on_virtual_gpus([](Group& group) {
              const TablesOnGpu tables(group, true);
              const MadeUpSchema schema(tables.columns({}));
              ShuffleOptions options;
              options.place = gpu(9);
              const std::string none = error_of([&] { Shuffle(group, schema.get(), options); });
              require_that(none == "rank 0: a shuffle of tables: there is no gpu9", none);
              options.place = group.rank() == 1 ? host(0) : tables.place();
              const std::string unlike = error_of([&] { Shuffle(group, schema.get(), options); });
              require_that(
                  unlike == "rank 1: this is 'a shuffle into 3 parts', at rank 0 'a shuffle into 3 parts on GPUs'",
                  unlike);
              options.place = tables.place();
              Shuffle shuffle(group, schema.get(), options);
              const auto columns = tables.columns(numbers_from(0, 20));
              const std::string bits = error_of([&] { shuffle.insert(made_batch(columns, 9, 3), 0); });
              require_that(bits == "column 'odd' of a table on a GPU: its bits do not begin at a byte", bits);
              const std::string offsets = error_of([&] { shuffle.insert(made_batch(columns, 9, 8), 0); });
              require_that(offsets == "column 'text' of a table on a GPU: its offsets do not begin at 0", offsets);
              const int keys[] = {0};
              const std::string hash = error_of([&] { shuffle.insert(made_batch(columns, 9), keys); });
              require_that(hash == "a shuffle of tables: rows on GPUs are not hashed: name their part", hash);
              shuffle.finish();
              while (const auto part = shuffle.next())
                require_that(shuffle.extract(*part).empty(), "rows from nowhere");
            }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
