#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "tests/offload/memory_channel.hpp"
#include "waywiser/base/units.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// Kernels that note when they run. "gate" ends when the test opens it; every other one at once.
struct Gates {
  std::mutex mutex;
  std::vector<std::string> ran;
  std::atomic<bool> open = false;
  std::atomic<Seconds> reached = 0;  // when one began

  std::vector<std::string> so_far() {
    const std::lock_guard lock(mutex);
    return ran;
  }
};

class GateModule final : public KernelModule {
 public:
  explicit GateModule(Gates& gates) : gates_(gates) {}
  KernelParameters parameters(const std::string& kernel) override {
    return kernel == "gate of an array" ? KernelParameters{{"b64", false}} : KernelParameters{};
  }
  void launch(Stream& stream, const std::string& kernel, const LaunchShape&, std::span<const KernelArgument>) override {
    stream.call([&gates = gates_, kernel] {
      gates.reached = now_seconds();
      while (kernel.starts_with("gate") && !gates.open) std::this_thread::yield();
      if (kernel == "fails") throw Error(ErrorKind::device, "it fell over");
      const std::lock_guard lock(gates.mutex);
      gates.ran.push_back(kernel);
    });
  }

 private:
  Gates& gates_;
};

class GateMaker final : public KernelMaker {
 public:
  explicit GateMaker(Gates& gates) : gates_(gates) {}
  std::string compile(const std::string& source) override { return source; }
  std::unique_ptr<KernelModule> load(const std::string&) override { return std::make_unique<GateModule>(gates_); }

 private:
  Gates& gates_;
};

constexpr std::uint64_t code = 1000;

class WorkerStreamsTest : public testing::Test {
 protected:
  static std::shared_ptr<Platform> virtual_platform() {
    VirtualMachine machine;
    machine.gpus = 1;
    return open_virtual_platform(machine);
  }

  std::shared_ptr<Platform> platform = virtual_platform();
  MemoryChannel channel{platform};
  Gates gates;
  RemoteWorker::Setup setup{platform, gpu(0), 64 << 10, {}, 20};
  std::unique_ptr<RemoteWorker> worker;

  void SetUp() override {
    setup.kernels = [this](const Platform&, Place) { return std::make_unique<GateMaker>(gates); };
    worker = std::make_unique<RemoteWorker>(channel, setup);
    channel.next_message =
        "\x7f"
        "ELF";  // a cubin: its kernels have any arguments
    EXPECT_EQ(serve({requests::LoadCode{code, 4}}), "");
  }
  void TearDown() override { gates.open = true; }  // the worker waits for what is under way

  static requests::LaunchKernel launch(std::string kernel) { return {code, std::move(kernel), {}, {}}; }
  static RemoteRequest stream(std::uint64_t number) { return requests::UseStream{{number}}; }
  static RemoteRequest synchronize() { return requests::Synchronize{}; }
  static RemoteRequest since(std::uint64_t later, std::uint64_t earlier) { return requests::Since{later, earlier}; }
  // The failure that the last reply tells, or "".
  std::string serve(const std::vector<RemoteRequest>& requests) {
    worker->serve(frame_with(requests));
    if (channel.replies.empty()) return "no reply";
    const auto& told = channel.replies.back().failure;
    return told ? told->text : "";
  }
  using Names = std::vector<std::string>;
};

TEST_F(WorkerStreamsTest, AStreamIsNotBehindAnotherOne) {
  EXPECT_EQ(
      serve({stream(1), launch("gate"), launch("behind the gate"), stream(2), launch("a"), launch("b"), synchronize()}),
      "");
  EXPECT_EQ(gates.so_far(), (Names{"a", "b"}));
  gates.open = true;
  EXPECT_EQ(serve({stream(0), synchronize()}), "");
  EXPECT_EQ(gates.so_far(), (Names{"a", "b", "gate", "behind the gate"}));
}

TEST_F(WorkerStreamsTest, StreamZeroIsOrderedWithAllOthers) {
  serve({stream(1), launch("gate"), stream(0), launch("after all"), stream(2), launch("after zero")});
  EXPECT_EQ(gates.so_far(), Names{});
  gates.open = true;
  EXPECT_EQ(serve({synchronize()}), "");
  EXPECT_EQ(gates.so_far(), (Names{"gate", "after all", "after zero"}));
}

TEST_F(WorkerStreamsTest, AStreamWaitsForAnEventOfAnother) {
  serve({stream(1), launch("gate"), requests::Record{{7}}, launch("gate of one"), stream(2), requests::Wait{{7}},
         launch("after the event"), stream(3), launch("free"), synchronize()});
  EXPECT_EQ(gates.so_far(), Names{"free"});
  gates.open = true;
  EXPECT_EQ(serve({stream(2), requests::Record{{8}}, requests::Await{{8}}}), "");
  const Names ran = gates.so_far();
  EXPECT_LT(std::ranges::find(ran, "gate"), std::ranges::find(ran, "after the event"));
  EXPECT_NE(std::ranges::find(ran, "after the event"), ran.end());
}

TEST_F(WorkerStreamsTest, EventsTellTheTimeBetweenThem) {
  EXPECT_EQ(serve({stream(1), requests::Record{{7}}, launch("a"), requests::Record{{8}}, since(8, 7)}), "");
  EXPECT_GE(channel.replies.back().since, 0);
  EXPECT_EQ(serve({requests::Wait{{9}}, synchronize()}), "wait: event 9 was not recorded");
  EXPECT_EQ(serve({requests::Free{{8}}, since(8, 7)}), "event: event 8 was not recorded");
  EXPECT_EQ(serve({requests::Await{{7}}}), "");
}

// What the GPU's clock says is read while the client goes on: the next answer has it.
TEST_F(WorkerStreamsTest, FunctionsAreTimedByTheGpuAndToldByTheNextAnswer) {
  worker->serve(frame_with({launch("a"), launch("gate"), launch("b")}));
  while (gates.so_far() != Names{"a"} || gates.reached == 0) std::this_thread::yield();
  constexpr Seconds held = 0.002;
  for (Seconds last = gates.reached; now_seconds() < last + held; last = gates.reached) std::this_thread::yield();
  gates.open = true;
  EXPECT_EQ(serve({synchronize()}), "");
  EXPECT_EQ(channel.replies.back().times.device.total, 0);
  EXPECT_EQ(serve({synchronize()}), "");
  EXPECT_GE(channel.replies.back().times.device.total, held);
}

TEST_F(WorkerStreamsTest, AnArrayIsReadBehindItsOwnStreamOnly) {
  const requests::Zeros zeros{{5, {DataType::uint8, false, {3}}}};
  EXPECT_EQ(serve({zeros, stream(1), launch("gate"), stream(2), launch("a"), requests::Get{{5}}}), "");
  EXPECT_EQ(channel.sent, std::vector(3, std::byte{0}));
  EXPECT_EQ(gates.so_far(), Names{"a"});
  gates.open = true;
  EXPECT_EQ(serve({stream(0), requests::Get{{5}}}), "");
  EXPECT_EQ(gates.so_far(), (Names{"a", "gate"}));
}

// Also one in which nothing was begun yet: what the client reads there may be made by stream 0.
TEST_F(WorkerStreamsTest, AWaitInAStreamIsBehindStreamZero) {
  VirtualMachine machine;
  machine.gpus = 1;
  machine.reorder_seed = 1;  // nothing runs before somebody waits for it
  setup.platform = platform = open_virtual_platform(machine);
  RemoteWorker lazy(channel, setup);
  const auto run = [&](const std::vector<RemoteRequest>& requests) { lazy.serve(frame_with(requests)); };
  channel.next_message =
      "\x7f"
      "ELF";
  run({requests::LoadCode{code, 4}, launch("a"), stream(1)});
  EXPECT_EQ(gates.so_far(), Names{});
  run({synchronize()});
  EXPECT_EQ(gates.so_far(), Names{"a"});
  run({launch("b"), stream(2), launch("c"), stream(0), launch("d"), stream(1), synchronize()});
  EXPECT_EQ(gates.so_far().back(), "d");
}

TEST_F(WorkerStreamsTest, AnErrorNamesTheCallsThatWereUnderWay) {
  const std::string told = serve(
      {stream(1), launch("good"), launch("fails"), stream(2), launch("good"), synchronize(), stream(1), synchronize()});
  EXPECT_NE(told.find("it fell over"), std::string::npos) << told;
  EXPECT_NE(told.find("(under way: good, fails)"), std::string::npos) << told;
}

TEST_F(WorkerStreamsTest, AFailureStopsAllStreamsUntilItIsTold) {
  EXPECT_EQ(serve({stream(1), launch("a"), launch("b"), stream(2)}), "");
  requests::LaunchKernel wrong = launch("c");
  wrong.code = 77;
  EXPECT_EQ(serve({wrong, stream(3), launch("d"), synchronize()}), "c: there is no code 77");
  EXPECT_EQ(serve({launch("e"), stream(0), synchronize()}), "");
  Names ran = gates.so_far();
  std::ranges::sort(ran);
  EXPECT_EQ(ran, (Names{"a", "b", "e"}));
}

TEST_F(WorkerStreamsTest, StreamsHaveALimitAndAreUsedAgain) {
  for (std::uint64_t number = 1; number <= 64; ++number) {
    EXPECT_EQ(serve({stream(number), synchronize()}), "");
  }
  EXPECT_EQ(serve({stream(65), synchronize()}), "stream: a client has at most 64 streams");
  EXPECT_EQ(serve({requests::Free{{3}}, stream(65), launch("a"), synchronize()}), "");
  EXPECT_EQ(serve({requests::Free{{65}}, launch("b"), synchronize()}), "");  // in stream 0
  EXPECT_EQ(gates.so_far(), (Names{"a", "b"}));
}

TEST_F(WorkerStreamsTest, FreedMemoryIsNotGivenOutWhileAStreamUsesIt) {
  const requests::Zeros array{{5, {DataType::float32, false, {10 << 10}}}};  // 40 KiB of 64
  requests::LaunchKernel use = launch("gate of an array");
  use.arguments = {KernelArgument::of_array(5)};
  requests::Zeros again = array;
  again.array = 6;
  EXPECT_EQ(serve({array, stream(1), use, requests::Free{{5}}, stream(2), synchronize()}), "");
  EXPECT_GE(platform->allocated_memory(0), Bytes{40} << 10);
  gates.open = true;
  EXPECT_EQ(serve({again, synchronize()}), "");  // waits for the kernel
  EXPECT_EQ(gates.so_far(), Names{"gate of an array"});
}

TEST_F(WorkerStreamsTest, UnencryptedArraysAreAskedForAndMayBeRefused) {
  const requests::OpenPlain plain{std::string(digits_of_secret, 'b')};
  EXPECT_EQ(serve({plain}), "unencrypted arrays: not admitted");
  channel.admits_plain = true;
  EXPECT_EQ(serve({plain}), "");
  EXPECT_EQ(channel.replies.back().address, "10.0.0.5:4712");
  EXPECT_EQ(channel.plain_secret, plain.secret);
}

TEST_F(WorkerStreamsTest, NothingIsCarriedOutBeyondTheLimitsOfAClient) {
  setup.limits.requests = 3;
  worker = std::make_unique<RemoteWorker>(channel, setup);
  EXPECT_EQ(serve({requests::Record{{7}}, synchronize(), requests::Await{{7}}}), "");
  for (int turn = 0; turn < 2; ++turn)
    EXPECT_EQ(serve({requests::Await{{7}}}), "request: this server carries out 3 requests of one client");
  setup.limits = {0, 1e-9};
  worker = std::make_unique<RemoteWorker>(channel, setup);
  EXPECT_EQ(serve({synchronize()}).find("request: this server serves one client for "), 0u);
}

}  // namespace
}  // namespace waywiser
