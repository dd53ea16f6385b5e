#include "waywiser/offload/worker.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

constexpr Bytes kib = 1024;

std::shared_ptr<Platform> one_virtual_gpu() {
  VirtualMachine machine;
  machine.gpus = 1;
  return open_virtual_platform(machine);
}

requests::Run call_of(std::string function, std::uint64_t result, std::vector<std::uint64_t> arrays,
                      requests::Numbers numbers = {}) {
  return {result, std::move(function), std::move(arrays), std::move(numbers)};
}

class WorkerTest : public testing::Test {
 protected:
  std::shared_ptr<Platform> platform = one_virtual_gpu();
  MemoryChannel channel{platform};
  ServerFunctions functions;

  RemoteWorker worker_of(Bytes limit = 64 * kib) {
    return RemoteWorker(channel, {platform, gpu(0), limit, functions, 20});
  }
  std::string failure() const {
    const auto& told = channel.replies.back().failure;
    return told ? told->text : "";
  }
  template <typename T>
  std::vector<T> numbers_sent() const {
    std::vector<T> numbers(channel.sent.size() / sizeof(T));
    std::memcpy(numbers.data(), channel.sent.data(), channel.sent.size());
    return numbers;
  }
};

template <typename T>
ArrayHead head_for(std::vector<std::uint64_t> shape) {
  return {DataTypeOf<T>::value, false, std::move(shape)};
}

TEST_F(WorkerTest, BuiltInFunctionsOfAllTheirTypes) {
  RemoteWorker worker = worker_of();
  const auto works = [&]<typename T>(T) {
    channel.fill = std::byte{1};  // each element is 0x0101...
    T one = 0;
    std::memset(static_cast<void*>(&one), 1, sizeof one);
    worker.serve(frame_with({requests::NewArray{{1, head_for<T>({3, 2})}}, call_of("add", 2, {1, 1}),
                             call_of("repeat_add", 3, {1, 2}, {{"times", 3}}), call_of("multiply", 4, {1, 1})}));
    const auto is = [&](std::uint64_t array, T expected) {
      worker.serve(frame_with({requests::Get{{array}}}));
      EXPECT_EQ(failure(), "");
      EXPECT_EQ(numbers_sent<T>(), std::vector<T>(6, expected));
      EXPECT_EQ(channel.replies.back().head, head_for<T>({3, 2}));
    };
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;
      const auto bits = static_cast<Unsigned>(one);
      is(2, static_cast<T>(bits + bits));
      is(3, static_cast<T>(7u * bits));
      is(4, static_cast<T>(bits * bits));
    } else {
      is(2, one + one);
      is(3, one + 2 * one + 2 * one + 2 * one);
      is(4, one * one);
      worker.serve(frame_with({call_of("scale", 5, {1}, {{"factor", -2}})}));
      is(5, -2 * one);
    }
    for (std::uint64_t array = 1; array < 6; ++array) worker.serve(frame_with({requests::Free{{array}}}));
    EXPECT_EQ(worker.used(), 0u);
  };
  works(double{});
  works(float{});
  works(std::int64_t{});
  works(std::int32_t{});
}

TEST_F(WorkerTest, ArraysAreTheSameByEveryRoad) {
  RemoteWorker worker = worker_of();
  std::uint64_t array = 0;
  for (const DataRoad road : data_roads) {
    const requests::Put put{{++array, 4, 8}};
    channel.fill = std::byte{2};
    worker.serve(frame_with({requests::UseRoad{road}, requests::NewArray{{array, head_for<std::int32_t>({4})}}}));
    channel.fill = std::byte{3};
    worker.serve(frame_with({put, requests::Get{{array}}}));
    EXPECT_EQ(failure(), "");
    EXPECT_EQ(numbers_sent<std::int32_t>(), (std::vector<std::int32_t>{0x02020202, 0x03030303, 0x03030303, 0x02020202}))
        << name(road);
  }
}

TEST_F(WorkerTest, AFailureIsToldOnceAndNothingIsDoneBetween) {
  RemoteWorker worker = worker_of();
  worker.serve(frame_with({requests::Zeros{{1, head_for<float>({4})}}, call_of("nothing", 2, {1}),
                           call_of("add", 3, {1, 1}), requests::Synchronize{}, requests::Synchronize{}}));
  ASSERT_EQ(channel.replies.size(), 2u);
  EXPECT_EQ(channel.replies[0].failure->text,
            "nothing: this server has no function 'nothing'; it has add, multiply, repeat_add, scale");
  EXPECT_FALSE(channel.replies[1].failure);
  worker.serve(frame_with({requests::Get{{3}}}));
  EXPECT_EQ(failure(), "array 3: there is no array 3");
}

TEST_F(WorkerTest, WrongCallsAreRefusedInWords) {
  RemoteWorker worker = worker_of();
  worker.serve(frame_with({requests::Zeros{{1, head_for<float>({4})}}, requests::Zeros{{2, head_for<float>({2, 2})}},
                           requests::Zeros{{3, head_for<std::uint8_t>({4})}},
                           requests::Zeros{{4, head_for<std::int32_t>({4})}}}));
  const std::pair<RemoteRequest, const char*> wrong[] = {
      {call_of("add", 9, {1, 2}), "add: arrays of unlike shapes or types: (4) of float32 and (2, 2) of float32"},
      {call_of("add", 9, {1}), "add: it takes 2 arrays, not 1"},
      {call_of("scale", 9, {}), "scale: it takes 1 arrays, not 0"},
      {call_of("add", 9, {3, 3}), "add: arrays of uint8: it takes float64, float32, int64 and int32"},
      {call_of("scale", 9, {4}), "scale: an array of int32: it takes float64 and float32"},
      {call_of("scale", 9, {1}, {{"times", 2}}), "scale: it takes no number 'times'"},
      {call_of("repeat_add", 9, {1, 1}, {{"times", 0.5}}), "repeat_add: times is a whole number from 1 to 100000"},
      {call_of("add", 1, {1, 1}), "add: there is an array 1 already, or there are 1000000"},
      {call_of("add", 9, {1, 8}), "add: there is no array 8"}};
  for (const auto& [call, words] : wrong) {
    worker.serve(frame_with({call, requests::Synchronize{}}));
    EXPECT_EQ(failure(), words);
  }
}

TEST_F(WorkerTest, BuiltinsOnlyRefusesFunctionsThatAreRegistered) {
  functions.names = {"mine"};
  functions.call = [](const auto&, auto, const auto&) -> FunctionResult {
    throw Error(ErrorKind::io, "it was called");
  };
  RemoteWorker worker(channel, {platform, gpu(0), 64 * kib, functions, 20, true});
  worker.serve(frame_with({requests::Zeros{{1, head_for<float>({4})}}, call_of("add", 2, {1, 1}),
                           call_of("mine", 3, {1}), requests::Synchronize{}}));
  EXPECT_EQ(failure(),
            "mine: this server was started with --builtins-only: it runs add, multiply, repeat_add, scale, and nothing "
            "else");
  EXPECT_EQ(channel.replies.back().failure->kind, ErrorKind::unavailable);
}

TEST_F(WorkerTest, MemoryHasALimitAlsoWhileFreedArraysAreInUse) {
  RemoteWorker worker = worker_of(8 * kib);
  const ArrayHead half = head_for<std::uint8_t>({4 * kib});
  worker.serve(frame_with({requests::Zeros{{1, half}}, requests::Zeros{{2, half}}, requests::NewArray{{3, half}},
                           requests::Synchronize{}}));
  EXPECT_EQ(failure(), "array 3: 4096 bytes more than the 8192 in use are above this server's limit of 8192");
  worker.serve(frame_with({requests::Free{{1}}, requests::Free{{2}}, requests::Free{{7}}}));
  const ArrayHead numbers = head_for<double>({512});
  worker.serve(frame_with({requests::Zeros{{1, numbers}}}));
  for (std::uint64_t turn = 0; turn < 50; ++turn)  // each frees the memory of the one before, which may be in use
    worker.serve(frame_with({call_of("scale", turn + 10, {1}), requests::Free{{turn + 10}}}));
  worker.serve(frame_with({requests::Synchronize{}}));
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(channel.replies.back().used, 4 * kib);
}

TEST_F(WorkerTest, PiecesOfAnArrayAreReplaced) {
  RemoteWorker worker = worker_of();
  worker.serve(frame_with({requests::Zeros{{1, head_for<std::uint8_t>({10})}}}));
  requests::Put put{{1, 6, 3}};
  channel.fill = std::byte{5};
  worker.serve(frame_with({put, requests::Get{{1}}}));
  EXPECT_EQ(numbers_sent<std::uint8_t>(), (std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 5, 5, 5, 0}));
  put.offset = ~Bytes{0};
  worker.serve(frame_with({put, requests::Synchronize{}}));
  EXPECT_NE(failure(), "");
}

TEST_F(WorkerTest, FunctionsOfTheServerGetArraysAndNumbers) {
  static const std::vector<float> result{1, 2, 3};
  functions.names = {"mine"};
  functions.call = [](const std::string& name, std::span<const HeldArray> arrays,
                      const requests::Numbers& numbers) -> FunctionResult {
    EXPECT_EQ(name, "mine");
    EXPECT_EQ(arrays.size(), 2u);
    EXPECT_EQ(arrays[1].head.shape, (std::vector<std::uint64_t>{2}));
    if (numbers != requests::Numbers{{"x", 0.5}}) throw Error(ErrorKind::invalid_input, "no x");
    const Region memory{reinterpret_cast<std::byte*>(const_cast<float*>(result.data())), 12, host(0)};
    return {{head_for<float>({3}), memory, nullptr}, 0.25};
  };
  RemoteWorker worker = worker_of();
  worker.serve(frame_with({requests::Zeros{{1, head_for<float>({4})}}, requests::Zeros{{2, head_for<double>({2})}},
                           call_of("mine", 3, {1, 2}, {{"x", 0.5}}), requests::Get{{3}}}));
  EXPECT_EQ(failure(), "");
  EXPECT_EQ(numbers_sent<float>(), result);
  EXPECT_EQ(channel.replies.back().times.device.total, 0.25);
  worker.serve(frame_with({call_of("mine", 4, {1, 2}), requests::Synchronize{}}));
  EXPECT_EQ(failure(), "mine: no x");
}

TEST_F(WorkerTest, NothingIsDoneAfterTheEnd) {
  RemoteWorker worker = worker_of();
  EXPECT_FALSE(worker.serve(frame_with({requests::End{}, requests::Synchronize{}})));
  EXPECT_TRUE(channel.replies.empty());
  EXPECT_THROW(worker.serve(std::vector<std::byte>(1)), Error);
}

}  // namespace
}  // namespace waywiser
