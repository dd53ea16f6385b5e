#include "waywiser/kernels/clear.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/device/virtual_gpu/virtual_machine.hpp"

namespace waywiser {
namespace {

// Counts what a stream is asked for.
class CountedStream final : public Stream {
 public:
  explicit CountedStream(Stream& stream) : stream_(stream) {}
  int copies = 0, kernels = 0;

  Place place() const override { return stream_.place(); }
  void copy(Region destination, ConstRegion source) override {
    ++copies;
    stream_.copy(destination, source);
  }
  const std::byte* reach(ConstRegion region) const override { return stream_.reach(region); }
  void launch(const Kernel& kernel) override {
    ++kernels;
    stream_.launch(kernel);
  }
  void write_value(Region flag, std::uint64_t value) override { stream_.write_value(flag, value); }
  void wait_value(ConstRegion flag, std::uint64_t at_least) override { stream_.wait_value(flag, at_least); }
  void call(std::function<void()> function) override { stream_.call(std::move(function)); }
  void record(Event& event) override { stream_.record(event); }
  void wait(const Event& event) override { stream_.wait(event); }
  bool done() override { return stream_.done(); }
  void synchronize(Deadline deadline) override { stream_.synchronize(deadline); }
  void* native() const override { return stream_.native(); }

 private:
  Stream& stream_;
};

// However many bytes, the host sends none.
TEST(Clear, IsOneRequestToTheGpu) {
  VirtualMachine machine;
  machine.gpus = 1;
  const auto platform = tests_use_cuda() ? open_cuda_platform() : open_virtual_platform(machine);
  const Bytes bytes = (Bytes{5} << 20) + 13, at = 3;
  const auto stream = platform->open_stream(gpu(0));
  const Memory memory = platform->allocate(gpu(0), at + bytes + 1, Allocation::gpu);
  std::vector<std::byte> here(at + bytes + 1, std::byte{7});
  const Region whole{here.data(), here.size(), host(0)};
  stream->copy(memory.region(), whole);
  CountedStream counted(*stream);
  clear(counted, memory.region().slice(at, bytes));
  clear(counted, memory.region().slice(0, 0));
  EXPECT_EQ(counted.copies, 0);
  EXPECT_EQ(counted.kernels, 1);
  stream->copy(whole, memory.region());
  stream->synchronize(Deadline::in(60));
  std::vector<std::byte> expected(here.size());
  expected[0] = expected[1] = expected[2] = expected.back() = std::byte{7};
  EXPECT_EQ(std::memcmp(here.data(), expected.data(), here.size()), 0);
}

}  // namespace
}  // namespace waywiser
