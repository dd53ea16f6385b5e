#include "waywiser/offload/array_staging.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/base/error_of.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr Bytes piece = 1000, largest = 5003;

// Copies end late, so that a buffer that is used again too early gives wrong bytes.
std::shared_ptr<Platform> slow_virtual_gpu(Seconds delay = 1e-3) {
  VirtualMachine machine;
  machine.gpus = 1;
  machine.delay = delay;
  return open_virtual_platform(machine);
}

class ArrayStagingTest : public testing::Test {
 protected:
  std::shared_ptr<Platform> platform = slow_virtual_gpu();
  Memory memory = platform->allocate(gpu(0), largest, Allocation::gpu);
  std::unique_ptr<Stream> stream = platform->open_stream(gpu(0));

  void copy(Region to, ConstRegion from) {
    stream->copy(to, from);
    stream->synchronize(Deadline::in(20));
  }
  Region part(Bytes bytes) const { return memory.region().slice(0, bytes); }
  static std::vector<std::byte> values(Bytes bytes, unsigned seed) {
    std::vector<std::byte> all(bytes);
    for (Bytes i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>((i * 31 + seed * 7 + i / 251) & 0xff);
    return all;
  }
};

TEST_F(ArrayStagingTest, EveryRoadMovesAllBytesBothWays) {
  for (const DataRoad road : data_roads) {
    ArrayStaging staging(platform, gpu(0), piece, 20);
    unsigned seed = 0;
    for (const Bytes bytes : {Bytes{0}, Bytes{1}, piece - 1, piece, piece + 1, 2 * piece, largest, Bytes{7}, largest}) {
      const std::vector<std::byte> given = values(bytes, ++seed);
      Bytes taken = 0, pieces = 0;
      staging.receive(road, part(bytes), [&](Region into) {
        ASSERT_LE(into.bytes, piece);
        EXPECT_EQ(into.place.is_gpu(), road == DataRoad::direct);
        const ConstRegion from{given.data() + taken, into.bytes, host(0)};
        into.place.is_gpu() ? copy(into, from) : static_cast<void>(std::memcpy(into.data, from.data, from.bytes));
        taken += into.bytes;
        ++pieces;
      });
      EXPECT_EQ(taken, bytes);
      EXPECT_EQ(pieces, (bytes + piece - 1) / piece);
      std::vector<std::byte> found(bytes);
      if (bytes != 0) copy({found.data(), bytes, host(0)}, part(bytes));
      EXPECT_EQ(found, given) << name(road) << " receives " << bytes;

      std::vector<std::byte> sent;
      staging.send(road, part(bytes), [&](ConstRegion data) {
        ASSERT_LE(data.bytes, piece);
        std::vector<std::byte> bytes_of_piece(data.bytes);
        if (data.place.is_gpu())
          copy({bytes_of_piece.data(), data.bytes, host(0)}, data);
        else
          std::memcpy(bytes_of_piece.data(), data.data, data.bytes);
        sent.insert(sent.end(), bytes_of_piece.begin(), bytes_of_piece.end());
      });
      EXPECT_EQ(sent, given) << name(road) << " sends " << bytes;
    }
  }
}

TEST_F(ArrayStagingTest, RoadsHaveNames) {
  for (const DataRoad road : data_roads) EXPECT_EQ(parse_data_road(name(road)), road);
  EXPECT_EQ(error_of([] { parse_data_road("pined"); }),
            "'pined' is no road of arrays; there are direct, pageable, pinned, pipelined");
}

TEST_F(ArrayStagingTest, AReceiverThatFailsIsToldToTheCaller) {
  for (const DataRoad road : data_roads) {
    ArrayStaging staging(platform, gpu(0), piece, 20);
    int pieces = 0;
    EXPECT_EQ(error_of([&] {
                staging.receive(road, part(largest), [&](Region) {
                  if (++pieces == 3) throw Error(ErrorKind::io, "the client has gone");
                });
              }),
              "the client has gone");
    staging.send(road, part(largest), [](ConstRegion) {});  // it is as good as new
  }
}

// The array may be freed then: a copy that ends later would write into other memory.
TEST(ArrayStaging, NoCopyIsUnderWayAfterAFailure) {
  const std::shared_ptr<Platform> platform = slow_virtual_gpu(0.2);
  const Memory memory = platform->allocate(gpu(0), largest, Allocation::gpu);
  const std::unique_ptr<Stream> stream = platform->open_stream(gpu(0));
  ArrayStaging staging(platform, gpu(0), piece, 20);
  const std::byte* first = stream->reach(memory.region());
  int pieces = 0;
  EXPECT_EQ(error_of([&] {
              staging.receive(DataRoad::pipelined, memory.region(), [&](Region into) {
                if (++pieces == 2) throw Error(ErrorKind::io, "the client has gone");
                std::memset(into.data, 7, into.bytes);
              });
            }),
            "the client has gone");
  EXPECT_EQ(first[piece - 1], std::byte{7});
}

}  // namespace
}  // namespace waywiser
