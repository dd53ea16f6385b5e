#include <gtest/gtest.h>

#include <cstring>

#include "tests/offload/fake_kernels.hpp"
#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// What programs of the CUDA driver API ask of a worker.
class WorkerDriverTest : public testing::Test {
 protected:
  static std::shared_ptr<Platform> virtual_platform() {
    VirtualMachine machine;
    machine.gpus = 1;
    return open_virtual_platform(machine);
  }
  FakeKernels noted;
  std::shared_ptr<Platform> platform = virtual_platform();
  MemoryChannel channel{platform};
  RemoteWorker worker = worker_with(noted);

  RemoteWorker worker_with(FakeKernels& kernels) {
    RemoteWorker::Setup setup{platform, gpu(0), Bytes{8} << 20, {}, 20};
    setup.kernels = [&kernels](const Platform&, Place) { return kernels.maker(); };
    return RemoteWorker(channel, setup);
  }
  static RemoteRequest zeros(std::uint64_t array, std::uint64_t bytes) {
    return requests::Zeros{{array, {DataType::uint8, false, {bytes}}}};
  }
  static RemoteRequest fill(std::uint64_t array, Bytes offset, Bytes bytes, std::uint32_t value, unsigned unit) {
    return requests::Fill{{array, offset, bytes}, value, unit};
  }
  std::string serve(const RemoteRequest& wanted) {
    worker.serve(frame_with({wanted}));
    if (channel.replies.empty()) return "";
    const auto& told = channel.replies.back().failure;
    return told ? told->text : "";
  }
  std::string waited(const RemoteRequest& wanted) {
    worker.serve(frame_with({wanted}));
    return serve(requests::Synchronize{});
  }
  // The text of the answer.
  std::string ask(const std::string& question, std::uint64_t number, std::vector<std::uint64_t> arguments = {},
                  const std::string& name = "") {
    channel.next_message = name;
    const std::string failure = serve(requests::Ask{question, number, std::move(arguments), name.size()});
    return failure.empty() ? std::string(reinterpret_cast<const char*>(channel.sent.data()), channel.sent.size())
                           : failure;
  }
  std::vector<std::uint8_t> bytes_of(std::uint64_t array, Bytes offset, Bytes bytes) {
    EXPECT_EQ(serve(requests::GetPart{{{array, offset, bytes}, {}}}), "");
    std::vector<std::uint8_t> got(channel.sent.size());
    if (!got.empty()) std::memcpy(got.data(), channel.sent.data(), got.size());
    return got;
  }
};

TEST_F(WorkerDriverTest, PartsOfArraysAreFilledCopiedAndRead) {
  constexpr Bytes large = (Bytes{3} << 20) + 5;  // three times the pattern, and a rest
  EXPECT_EQ(waited(zeros(1, large)), "");
  EXPECT_EQ(waited(fill(1, 1, large - 1, 0x44, 1)), "");
  EXPECT_EQ(waited(fill(1, 4, 6, 0x0201, 2)), "");
  EXPECT_EQ(waited(fill(1, 12, 4, 0x04030201, 4)), "");
  EXPECT_EQ(bytes_of(1, 0, 17),
            (std::vector<std::uint8_t>{0, 0x44, 0x44, 0x44, 1, 2, 1, 2, 1, 2, 0x44, 0x44, 1, 2, 3, 4, 0x44}));
  EXPECT_EQ(bytes_of(1, 5, large - 5).size(), large - 5);
  EXPECT_EQ(bytes_of(1, large - 3, 3), (std::vector<std::uint8_t>(3, 0x44)));
  EXPECT_EQ(waited(zeros(2, 10)), "");
  EXPECT_EQ(waited(requests::CopyBytes{{2, 3, 4}, 1, 12}), "");
  EXPECT_EQ(bytes_of(2, 0, 10), (std::vector<std::uint8_t>{0, 0, 0, 1, 2, 3, 4, 0, 0, 0}));
  EXPECT_TRUE(bytes_of(2, 10, 0).empty());
}

// A copy within an array: right where its parts are apart, else refused before anything has moved.
TEST_F(WorkerDriverTest, PartsOfACopyThatOverlapAreRefused) {
  constexpr Bytes bytes = 4, from = 6, room = 16;
  std::vector<std::uint8_t> numbers(room);
  EXPECT_EQ(waited(zeros(1, room)), "");
  for (Bytes to = 0; to + bytes <= room; ++to) {
    for (Bytes i = 0; i < room; ++i) EXPECT_EQ(waited(fill(1, i, 1, numbers[i] = static_cast<std::uint8_t>(i), 1)), "");
    const bool may = to + bytes <= from || from + bytes <= to;
    EXPECT_EQ(waited(requests::CopyBytes{{1, to, bytes}, 1, from}),
              may ? "" : "copy: put between overlapping regions in gpu0");
    for (Bytes i = 0; may && i < bytes; ++i) numbers[to + i] = static_cast<std::uint8_t>(from + i);
    EXPECT_EQ(bytes_of(1, 0, room), numbers) << to;
  }
}

TEST_F(WorkerDriverTest, WhatIsBeyondAnArrayIsRefused) {
  EXPECT_EQ(waited(zeros(1, 10)), "");
  EXPECT_NE(waited(fill(1, 3, 8, 0, 1)), "");
  EXPECT_EQ(waited(fill(1, 0, 6, 0, 3)), "fill: units of 3 bytes: 1, 2 or 4");
  EXPECT_EQ(waited(fill(1, 0, 6, 0, 4)), "fill: units of 4 bytes: 1, 2 or 4");
  EXPECT_EQ(waited(fill(7, 0, 6, 0, 1)), "fill: there is no array 7");
  EXPECT_NE(waited(requests::CopyBytes{{1, 0, 8}, 1, 3}), "");
  EXPECT_NE(serve(requests::GetPart{{{1, 9, 2}, {}}}), "");
  EXPECT_FALSE(channel.replies.back().head);
  EXPECT_TRUE(channel.sent.empty());
  EXPECT_EQ(serve(requests::GetPart{{{1, 0, 2}, {9, 0}}}), "array 1: there is no memory 9 of the client");
}

TEST_F(WorkerDriverTest, QuestionsAreAnsweredInWords) {
  EXPECT_EQ(waited(zeros(1, 10)), "");
  EXPECT_GT(std::stoull(ask("address", 1)), 0u);
  EXPECT_EQ(ask("address", 2), "address: there is no array 2");
  const Json gpu = parse_json(ask("gpu", 0), "the answer");
  EXPECT_EQ(gpu.at("name"), "virtual GPU");
  EXPECT_EQ(gpu.at("attributes").at(9), 32);  // number 10: a warp
  EXPECT_EQ(gpu.at("attributes").at(74), 9);  // numbers 75 and 76: compute capability 9.0
  EXPECT_EQ(gpu.at("attributes").at(75), 0);
  EXPECT_EQ(ask("kernel", 3, {5}, "axpy"), "kernel: there is no code 5");
  EXPECT_EQ(serve(requests::LoadCode{5, 1}), "");
  const std::string facts = R"({"parameters":[[0,8],[8,4]],"attributes":[1024,0,0]})";
  EXPECT_EQ(ask("kernel", 3, {5}, "axpy"), facts);
  EXPECT_EQ(ask("kernel", 3, {5}, "axpy"), "kernel: there is a kernel 3 already, or there are 100000");
  EXPECT_EQ(ask("kernel", 4, {5}, "nothing"), "kernel: the code has no kernel of this name");
  EXPECT_EQ(ask("occupancy", 3, {256, 1}), "3");
  EXPECT_EQ(ask("attribute", 3, {1, 77}), R"({"parameters":[[0,8],[8,4]],"attributes":[1024,77,0]})");
  EXPECT_EQ(ask("variable", 8, {5}, "x"), "variable: this needs a GPU of CUDA");
  for (const auto& [question, arguments] : std::vector<std::pair<std::string, std::vector<std::uint64_t>>>{
           {"occupancy", {}}, {"occupancy", {1}}, {"attribute", {1ull << 40, 1}}, {"attribute", {1, 1ull << 40}}})
    EXPECT_EQ(ask(question, 3, arguments), question + ": a question with wrong numbers");
  EXPECT_EQ(ask("weather", 3, {1, 1}), "weather: nobody answers this question");
  EXPECT_EQ(ask("occupancy", 4, {1, 1}), "occupancy: there is no kernel 4");
  requests::StartKernel start{3, {}, std::string("\0\1\2", 3)};
  EXPECT_EQ(waited(start), "");
  EXPECT_EQ(noted.started, (std::vector<std::pair<std::string, std::string>>{{"axpy", start.parameters}}));
  start.kernel = 4;
  EXPECT_EQ(waited(start), "kernel: there is no kernel 4");
}

}  // namespace
}  // namespace waywiser
