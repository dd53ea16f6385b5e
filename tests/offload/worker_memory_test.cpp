#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr Bytes client_bytes = 12000;
const std::string own_secret(64, 'a');

// A worker and memory of its client, which both have mapped.
class WorkerMemoryTest : public testing::Test {
 protected:
  static std::shared_ptr<Platform> virtual_platform() {
    VirtualMachine machine;
    machine.gpus = 1;
    return open_virtual_platform(machine);
  }
  std::shared_ptr<Platform> platform = virtual_platform();
  MemoryChannel channel{platform};
  RemoteWorker worker{channel, {platform, gpu(0), 1 << 16, {}, 20}};
  Mapping memory;

  void SetUp() override {
    channel.file = create_shared_file(pinned_file_bytes(client_bytes), "the client");
    memory = Mapping::of_file(channel.file, pinned_file_bytes(client_bytes), true, "the client");
    std::memcpy(memory.data() + memory.length() - page_size(), own_secret.data(), own_secret.size());
  }
  static ArrayHead head(std::uint64_t elements) { return {DataType::int32, false, {elements}}; }
  static requests::ArrayFrom array_from(std::uint64_t array, std::uint64_t elements, Bytes offset = 0) {
    return {{array, head(elements), {9, offset}}};
  }
  static requests::GetInto get_into(std::uint64_t array, std::uint64_t elements, Bytes offset = 0) {
    return {{array, head(elements), {9, offset}}};
  }
  static requests::Pin pin(std::uint64_t number = 9, Bytes bytes = client_bytes) {
    return {number, bytes, MemoryChannel::file_number, own_secret};
  }
  std::string serve(const RemoteRequest& wanted) {
    worker.serve(frame_with({wanted}));
    const auto& told = channel.replies.back().failure;
    return told ? told->text : "";
  }
  bool is_pinned(const RemoteRequest& wanted) {
    EXPECT_EQ(serve(wanted), "");
    return channel.replies.back().placed;
  }
  std::int32_t* numbers() const { return reinterpret_cast<std::int32_t*>(memory.data()); }
};

TEST_F(WorkerMemoryTest, BytesGoBetweenTheClientsMemoryAndTheGpuAndNotAsMessages) {
  ASSERT_TRUE(is_pinned(pin()));
  std::fill_n(numbers(), 2000, 7);
  EXPECT_EQ(serve(array_from(1, 1000, 4000)), "");
  std::fill_n(numbers(), 2000, 8);
  EXPECT_EQ(serve(requests::PutFrom{{{1, 400, 800}, {9, 0}}}), "");
  EXPECT_EQ(serve(get_into(1, 1000, 8)), "");
  EXPECT_TRUE(channel.replies.back().placed);
  EXPECT_EQ(channel.replies.back().head, (ArrayHead{DataType::int32, false, {1000}}));
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(numbers()[i + 2], i >= 100 && i < 300 ? 8 : 7) << i;
  EXPECT_EQ(channel.received, 0u);
  EXPECT_TRUE(channel.sent.empty());
  EXPECT_EQ(serve(array_from(2, 0)), "");
  EXPECT_EQ(worker.used(), 4000u);
}

// The stream copies, and no reply says so: what is asked for later comes after it.
TEST_F(WorkerMemoryTest, AStreamTakesBytesWithoutAReply) {
  ASSERT_TRUE(is_pinned(pin()));
  requests::BeginPut put{{{1, 400, 800}, {9, 0}}};
  std::fill_n(numbers(), 1000, 7);
  const std::size_t replies = channel.replies.size();
  worker.serve(frame_with({requests::Zeros{{1, head(1000)}}, requests::UseStream{{5}}, put}));
  requests::BeginPut nothing = put;
  nothing.part.bytes = 0;
  for (int i = 0; i < 2000; ++i) worker.serve(frame_with({put, nothing}));  // more than may be under way
  EXPECT_EQ(channel.replies.size(), replies);
  EXPECT_EQ(serve(get_into(1, 1000, 4000)), "");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(numbers()[1000 + i], i >= 100 && i < 300 ? 7 : 0) << i;
  worker.serve(frame_with({put, requests::Free{{9}}, put}));  // the memory goes when it has been read
  EXPECT_EQ(serve(requests::Synchronize{}), "array 1: there is no memory 9 of the client");
  put.part.array = 3;
  worker.serve(frame_with({put}));
  EXPECT_EQ(serve(requests::Synchronize{}), "array 3: there is no array 3");
}

TEST_F(WorkerMemoryTest, WhatIsNoneOfTheClientsMemoryIsRefused) {
  EXPECT_EQ(serve(array_from(1, 1)), "array 1: there is no memory 9 of the client");
  ASSERT_TRUE(is_pinned(pin()));
  for (const std::uint64_t at : {client_bytes - 7, client_bytes, ~std::uint64_t{0}}) {
    EXPECT_NE(serve(array_from(1, 2, at)), "");
    EXPECT_EQ(worker.used(), 0u);
  }
  EXPECT_EQ(serve(array_from(1, 2)), "");
  numbers()[0] = 5;
  EXPECT_EQ(serve(get_into(1, 3)), "array 1: an array of 2 int32 for room of 3 int32");
  EXPECT_EQ(numbers()[0], 5);
  EXPECT_EQ(serve(get_into(4, 3)), "array 4: there is no array 4");
  EXPECT_EQ(serve(requests::Free{{9}}), "array 4: there is no array 4");  // no reply of its own
  EXPECT_EQ(serve(get_into(1, 2)), "array 1: there is no memory 9 of the client");
}

TEST_F(WorkerMemoryTest, OnlyMemoryThatHasTheSecretIsMapped) {
  requests::Pin wrong = pin();
  wrong.secret = std::string(64, 'b');
  EXPECT_FALSE(is_pinned(wrong));
  EXPECT_FALSE(is_pinned(pin(9, client_bytes + 4096)));  // the file is shorter
  wrong = pin();
  wrong.file = 6;  // no file of the client
  EXPECT_FALSE(is_pinned(wrong));
  for (std::uint64_t number = 1; number <= 5; ++number) EXPECT_TRUE(is_pinned(pin(number))) << number;
  EXPECT_FALSE(is_pinned(pin(5)));
  EXPECT_FALSE(is_pinned(pin(6)));  // above the limit of the client's arrays
  worker.serve(frame_with({requests::Free{{2}}}));
  EXPECT_TRUE(is_pinned(pin(6)));
  wrong.secret = "short";
  EXPECT_THROW(worker.serve(frame_with({wrong})), Error);
}

}  // namespace
}  // namespace waywiser
