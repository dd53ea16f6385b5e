#include <gtest/gtest.h>

#include "tests/offload/fake_kernels.hpp"
#include "tests/offload/memory_channel.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

class WorkerKernelsTest : public testing::Test {
 protected:
  static std::shared_ptr<Platform> virtual_platform() {
    VirtualMachine machine;
    machine.gpus = 1;
    return open_virtual_platform(machine);
  }

  std::shared_ptr<Platform> platform = virtual_platform();
  MemoryChannel channel{platform};
  FakeKernels fake;
  RemoteWorker::Setup setup{platform, gpu(0), 64 << 10, {}, 20};

  void SetUp() override {
    setup.kernels = [this](const Platform&, Place) { return fake.maker(); };
  }
  // "" or the failure, with its details.
  std::string load(RemoteWorker& worker, std::uint64_t number, const std::string& code) {
    channel.next_message = code;
    worker.serve(frame_with({requests::LoadCode{number, code.size()}}));
    return told();
  }
  std::string launch(RemoteWorker& worker, std::uint64_t code, const std::string& kernel,
                     std::vector<KernelArgument> arguments, LaunchShape shape = {}) {
    worker.serve(
        frame_with({requests::LaunchKernel{code, kernel, shape, std::move(arguments)}, requests::Synchronize{}}));
    return told();
  }
  std::string told() const {
    const RemoteReply& reply = channel.replies.back();
    EXPECT_EQ(channel.sent.size(), reply.details);
    const std::string details(reinterpret_cast<const char*>(channel.sent.data()), channel.sent.size());
    return reply.failure ? reply.failure->text + details : "";
  }
  static std::vector<KernelArgument> axpy_arguments(std::uint64_t y = 1) {
    return {KernelArgument::of_array(y), KernelArgument::of_array(1), KernelArgument::of(0.5f),
            KernelArgument::of(std::int32_t{-7})};
  }
  void make_array(RemoteWorker& worker) {
    worker.serve(frame_with({requests::Zeros{{1, {DataType::float32, false, {4}}}}}));
  }
};

TEST_F(WorkerKernelsTest, AKernelGetsAddressesAndNumbers) {
  RemoteWorker worker(channel, setup);
  make_array(worker);
  EXPECT_EQ(load(worker, 2, "some source"), "");
  EXPECT_EQ(launch(worker, 2, "axpy", axpy_arguments(), {{4, 1, 1}, {128, 1, 1}, 64}), "");
  ASSERT_EQ(fake.launched.size(), 1u);
  const auto& [kernel, arguments] = fake.launched[0];
  EXPECT_EQ(kernel, "axpy");
  EXPECT_EQ(arguments[0], arguments[1]);
  EXPECT_NE(arguments[0].bits, 1u);  // an address
  EXPECT_EQ(arguments[3].bits, 0xfffffff9u);
}

TEST_F(WorkerKernelsTest, TheSameCodeIsCompiledOnce) {
  RemoteWorker worker(channel, setup);
  EXPECT_EQ(load(worker, 2, "some source"), "");
  EXPECT_EQ(load(worker, 3, "some source"), "");
  EXPECT_EQ(load(worker, 4, "other source"), "");
  EXPECT_EQ(fake.loaded.size(), 2u);
  EXPECT_EQ(load(worker, 4, "some source"), "kernels: there is a code 4 already, or there are 1000");
}

TEST_F(WorkerKernelsTest, TheCompilersLinesComeBack) {
  RemoteWorker worker(channel, setup);
  EXPECT_EQ(load(worker, 2, "wrong"),
            "kernels: it does not compile\nsource.cu(1): error: identifier \"wrong\" is undefined\n\n1 error detected "
            "in the compilation\n");
  EXPECT_EQ(launch(worker, 2, "axpy", {}), "axpy: there is no code 2");
  EXPECT_EQ(load(worker, 3, "right"), "");
}

TEST_F(WorkerKernelsTest, WrongCallsAreRefusedInWords) {
  RemoteWorker worker(channel, setup);
  make_array(worker);
  EXPECT_EQ(load(worker, 2, "some source"), "");
  EXPECT_EQ(launch(worker, 2, "other", axpy_arguments()),
            "other: the code has no kernel of this name, but axpy; a kernel is extern \"C\" __global__");
  EXPECT_EQ(launch(worker, 2, "axpy", axpy_arguments(9)), "axpy: there is no array 9");
  EXPECT_EQ(launch(worker, 2, "axpy", {}), "axpy: it takes 4 arguments, not 0");
  auto arguments = axpy_arguments();
  arguments[2] = KernelArgument::of(0.5);
  EXPECT_EQ(launch(worker, 2, "axpy", arguments), "axpy: argument 3 is a float64, and the kernel takes a .f32 there");
  EXPECT_EQ(launch(worker, 2, "axpy", axpy_arguments(), {{1, 1, 1}, {2000, 1, 1}, 0}),
            "axpy: x of a block is 2000: from 1 to 1024");
  fake.fails_with = "the kernel was not launched: too many resources";
  EXPECT_EQ(launch(worker, 2, "axpy", axpy_arguments()), "axpy: the kernel was not launched: too many resources");
  EXPECT_EQ(launch(worker, 2, "axpy", axpy_arguments()), "");
  EXPECT_EQ(fake.launched.size(), 1u);
}

TEST_F(WorkerKernelsTest, OfACubinTheSizesAreChecked) {
  RemoteWorker worker(channel, setup);
  make_array(worker);
  EXPECT_EQ(load(worker, 2,
                 "\x7f"
                 "ELF and more"),
            "");
  EXPECT_EQ(launch(worker, 2, "axpy", {KernelArgument::of_array(1), KernelArgument::of(1.f)}), "");
  EXPECT_EQ(launch(worker, 2, "axpy", {KernelArgument::of_array(1), KernelArgument::of(1.)}),
            "axpy: argument 2 is a float64, and the kernel takes a .b32 there");
  EXPECT_EQ(launch(worker, 2, "f", {}), "f: the code has no kernel of this name");
}

TEST_F(WorkerKernelsTest, BuiltinsOnlyAndVirtualGpusRefuseInOneLine) {
  setup.builtins_only = true;
  RemoteWorker of_builtins(channel, setup);
  const std::string why =
      "this server was started with --builtins-only: it runs add, multiply, repeat_add, scale, and "
      "nothing else";
  EXPECT_EQ(load(of_builtins, 2, "some source"), "kernels: " + why);
  EXPECT_EQ(launch(of_builtins, 2, "axpy", {}), "axpy: " + why);
  EXPECT_TRUE(fake.loaded.empty());
  RemoteWorker on_virtual(channel, {platform, gpu(0), 64 << 10, {}, 20});
  EXPECT_EQ(load(on_virtual, 2, ".version 9.0"),
            "kernels: CUDA kernels need a GPU of CUDA, and this one is virtual: the server was started with --virtual");
  EXPECT_EQ(channel.replies.back().failure->kind, ErrorKind::unavailable);
}

TEST_F(WorkerKernelsTest, CodesHaveALimitTogether) {
  RemoteWorker worker(channel, setup);
  std::string code(longest_code, ' ');
  std::string told_last;
  for (std::uint64_t number = 2; number < 19 && told_last.empty(); ++number) {
    code[0] = static_cast<char>('a' + number);
    told_last = load(worker, number, code);
  }
  EXPECT_EQ(fake.loaded.size(), 16u);
  EXPECT_EQ(told_last, "kernels: a client has at most 1000 codes of 64 MiB together");
}

}  // namespace
}  // namespace waywiser
