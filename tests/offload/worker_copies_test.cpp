#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// What one worker gives, and the other one takes later.
struct Carried {
  std::string secret;
  std::deque<std::byte> bytes;
  bool breaks = false, plain = false;
};

class CarriedLine final : public WorkerLine {
 public:
  explicit CarriedLine(Carried& carried) : carried_(carried) {}
  void send(std::span<const std::byte> bytes) override {
    carried_.bytes.insert(carried_.bytes.end(), bytes.begin(), bytes.end());
  }
  void receive(std::span<std::byte> bytes) override {
    if (carried_.bytes.size() < bytes.size()) throw Error(ErrorKind::io, "the line broke");
    std::ranges::copy_n(carried_.bytes.begin(), static_cast<std::ptrdiff_t>(bytes.size()), bytes.begin());
    carried_.bytes.erase(carried_.bytes.begin(), carried_.bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size()));
  }
  void close() override {
    if (carried_.breaks) throw Error(ErrorKind::io, "the line broke");
  }

 private:
  Carried& carried_;
};

class CarriedLines final : public WorkerLines {
 public:
  explicit CarriedLines(Carried& carried) : carried_(carried) {}
  std::unique_ptr<WorkerLine> wait(const std::string& secret, bool plain,
                                   const std::function<void(const std::string& address)>& announce) override {
    carried_.secret = secret;
    carried_.plain = plain;
    announce("10.0.0.5:4711");
    return std::make_unique<CarriedLine>(carried_);
  }
  std::unique_ptr<WorkerLine> join(const std::string& secret, bool plain, const std::string& address) override {
    if (secret != carried_.secret || plain != carried_.plain || address != "10.0.0.5:4711")
      throw Error(ErrorKind::io, "nobody waits there");
    return std::make_unique<CarriedLine>(carried_);
  }

 private:
  Carried& carried_;
};

class WorkerCopiesTest : public testing::Test {
 protected:
  static std::shared_ptr<Platform> virtual_platform() {
    VirtualMachine machine;
    machine.gpus = 1;
    return open_virtual_platform(machine);
  }
  std::shared_ptr<Platform> platform = virtual_platform();
  MemoryChannel channel{platform};
  Carried carried;

  RemoteWorker worker_of(Bytes limit) {
    RemoteWorker::Setup setup{platform, gpu(0), limit, {}, 20};
    setup.lines = std::make_shared<CarriedLines>(carried);
    return RemoteWorker(channel, setup);
  }
  static inline const ArrayHead head{DataType::uint8, false, {2, 2048}};
  static inline const requests::NewArray array{{1, head}};
  static inline const requests::Zeros zeros{{1, head}};
  static inline const requests::Get get{{5}};
  static requests::Give give(bool plain = false) { return {1, std::string(digits_of_secret, 'a'), plain}; }
  static requests::Take take(char of_secret = 'a', bool plain = false) {
    return {5, std::string(digits_of_secret, of_secret), "10.0.0.5:4711", plain};
  }
  std::string serve(RemoteWorker& worker, const std::vector<RemoteRequest>& requests) {
    worker.serve(frame_with(requests));
    const auto& told = channel.replies.back().failure;
    return told ? told->text : "";
  }
};

TEST_F(WorkerCopiesTest, AnArrayGoesFromOneWorkerToAnother) {
  RemoteWorker one = worker_of(1 << 20), other = worker_of(1 << 20);
  channel.fill = std::byte{7};
  EXPECT_EQ(serve(one, {array, give()}), "");
  EXPECT_EQ(channel.replies.back().address, "10.0.0.5:4711");
  EXPECT_EQ(serve(other, {take(), get}), "");
  EXPECT_EQ(channel.sent, std::vector(4096, std::byte{7}));
  EXPECT_EQ(channel.replies.back().head, (ArrayHead{DataType::uint8, false, {2, 2048}}));
}

TEST_F(WorkerCopiesTest, BothWorkersHearThatAnArrayGoesUnencrypted) {
  RemoteWorker one = worker_of(1 << 20), other = worker_of(1 << 20);
  EXPECT_EQ(serve(one, {array, give(true)}), "");
  EXPECT_TRUE(carried.plain);
  EXPECT_EQ(serve(other, {take('a', true), get}), "");
  const auto encrypting = open_worker_lines("127.0.0.1", {true, false}, {});
  for (const auto& way :
       std::vector<std::function<void()>>{[&] { encrypting->wait(carried.secret, true, [](const std::string&) {}); },
                                          [&] { encrypting->join(carried.secret, true, "127.0.0.1:4711"); }})
    EXPECT_THROW(way(), Error);
}

TEST_F(WorkerCopiesTest, WhatCannotBeGivenIsTold) {
  RemoteWorker one = worker_of(1 << 20);
  EXPECT_EQ(serve(one, {give()}), "array 1: there is no array 1");
  EXPECT_EQ(channel.replies.size(), 1u);
  EXPECT_EQ(channel.replies.back().address, "");
  carried.breaks = true;
  EXPECT_EQ(serve(one, {zeros, give()}), "");
  EXPECT_EQ(serve(one, {requests::Synchronize{}}), "array 1: the line broke");
  RemoteWorker without(channel, {platform, gpu(0), 1 << 20, {}, 20});
  EXPECT_EQ(serve(without, {zeros, give()}), "array 1: this server has no way to another one");
}

TEST_F(WorkerCopiesTest, WhatCannotBeTakenIsThrownAwayAndTold) {
  RemoteWorker one = worker_of(1 << 20), small = worker_of(1 << 10);
  const requests::Synchronize synchronize;
  serve(one, {zeros, give()});
  EXPECT_EQ(serve(small, {take(), synchronize}),
            "array 5: 4096 bytes more than the 0 in use are above this server's limit of 1024");
  EXPECT_TRUE(carried.bytes.empty());
  EXPECT_EQ(serve(small, {take(), synchronize}), "array 5: the line broke");
  EXPECT_EQ(small.used(), 0u);
  EXPECT_EQ(serve(small, {take('b'), synchronize}), "array 5: nobody waits there");
  requests::Take wrong = take();
  wrong.secret = "short";
  EXPECT_THROW(small.serve(frame_with({wrong})), Error);
}

}  // namespace
}  // namespace waywiser
