#include "waywiser/offload/remote_gpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "tests/offload/fake_kernels.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/offload/serve_client.hpp"
#include "waywiser/transport/tls/libssl.hpp"

namespace waywiser {
namespace {

constexpr Bytes memory_limit = Bytes{64} << 20;

Problems with_a_worker(const std::function<void(RemoteGpu&)>& client, bool apart = false,
                       FakeKernels* kernels = nullptr, const std::string& plain_at = "") {
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  if (apart) {
    ranks.machines_apart = true;
    ranks.secret = "the secret of this job";
  }
  return ranks.in_processes([&](Group& group) {
    if (group.rank() == worker_rank) {
      WorkerState last;
      RemoteWorker::Setup setup{group.platform(), gpu(0), memory_limit, {}};
      if (kernels != nullptr) setup.kernels = [kernels](const Platform&, Place) { return kernels->maker(); };
      serve_client(group, setup, [&](const WorkerState& state) { last = state; }, plain_at);
      require_that(last.requests > 0, "the state after the end");
      return group.close();
    }
    RemoteGpu remote(std::move(group), "the GPU", memory_limit);
    client(remote);
    remote.close();
  });
}

std::vector<double> numbers_from(double first, std::size_t count) {
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void expect_error(const std::function<void()>& call, ErrorKind kind, const std::string& words) {
  try {
    call();
    require_that(false, "an error: " + words);
  } catch (const Error& error) {
    require_that(error.kind() == kind && std::string(error.what()).find(words) != std::string::npos, error.what());
  }
}

void compute_there(RemoteGpu& remote) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{2'500'000}}) {
    const std::vector<double> a = numbers_from(1, count), b = numbers_from(-3, count);
    const std::uint64_t arrays[] = {remote.array(std::span(a)), remote.array(std::span(b))};
    const RemoteNumber times[] = {{"times", 2}};
    const std::uint64_t sum = remote.run("repeat_add", arrays, times);
    std::vector<double> got(count);
    remote.get(sum, std::span(got));
    for (std::size_t i = 0; i < count; ++i) require_that(got[i] == a[i] + b[i] + b[i], "element " + std::to_string(i));
    for (const std::uint64_t array : {arrays[0], arrays[1], sum}) remote.free(array);
  }
}

TEST(RemoteGpu, FunctionsRunOnArraysThere) { EXPECT_EQ(with_a_worker(compute_there), no_problems); }

TEST(RemoteGpu, TheSameBetweenMachines) { EXPECT_EQ(with_a_worker(compute_there, true), no_problems); }

// More than the server has room for at once: they collect in frames, and none is lost.
TEST(RemoteGpu, ManyCallsDoNotWait) {
  EXPECT_EQ(with_a_worker([](RemoteGpu& remote) {
              const double one = 1;
              const std::uint64_t step = remote.array(std::span(&one, 1));
              std::uint64_t sum = step;
              for (int i = 0; i < 5000; ++i) {
                const std::uint64_t arguments[] = {sum, step};
                const std::uint64_t next = remote.run("add", arguments);
                if (sum != step) remote.free(sum);
                sum = next;
              }
              remote.flush();
              double got = 0;
              remote.get(sum, std::span(&got, 1));
              require_that(got == 5001, "all sums");
              const RemoteTimes times = remote.times();
              require_that(times.server.device.total > 0 && times.server.device.total <= times.server.compute.total,
                           "the times of the functions");
              require_that(times.input.end >= times.input.begin && times.output.total > 0, "the times here");
              const ClockOffset clock = remote.align_clocks();  // both ranks have one clock
              require_that(std::abs(clock.offset) <= clock.error, "the clock of this machine");
            }),
            no_problems);
}

TEST(RemoteGpu, ErrorsComeWithTheNextAnswer) {
  EXPECT_EQ(
      with_a_worker([](RemoteGpu& remote) {
        const std::uint64_t array = remote.zeros({DataType::float32, false, {2, 3}});
        const std::uint64_t lost = remote.run("nothing", std::span(&array, 1));
        expect_error([&] { remote.synchronize(); }, ErrorKind::invalid_input, "the GPU: nothing: this server has no");
        remote.synchronize();
        expect_error([&] { remote.synchronize(), remote.get(lost, Elements{}); }, ErrorKind::invalid_input, "no array");
        std::vector<float> five(5), six(6, 1);
        expect_error([&] { remote.get(array, std::span(five)); }, ErrorKind::invalid_input,
                     "the GPU: an array of 6 float32 for room of 5 float32");
        remote.get(array, std::span(six));
        require_that(six == std::vector<float>(6, 0), "zeros");
        expect_error([&] { remote.zeros({DataType::uint8, false, {memory_limit + 1}}); }, ErrorKind::device, "limit");
        expect_error([&] { remote.zeros({DataType::float64, false, {~0ull, ~0ull}}); }, ErrorKind::invalid_input,
                     "bytes");
        expect_error([&] { remote.run(std::string(65, 'x'), {}); }, ErrorKind::invalid_input, "at most 64 bytes");
        const std::vector<std::uint64_t> many(200, array);
        expect_error([&] { remote.run("add", many); }, ErrorKind::invalid_input, "fewer arrays");
        remote.put(array, 4, ConstElements(std::span(five).first(1)).region);
        remote.synchronize();
        remote.close();
        expect_error([&] { remote.synchronize(); }, ErrorKind::invalid_input, "the GPU is closed");
      }),
      no_problems);
}

TEST(RemoteGpu, StreamsAndEvents) {
  EXPECT_EQ(with_a_worker([](RemoteGpu& remote) {
              const std::vector<double> a = numbers_from(1, 1000);
              const std::uint64_t array = remote.array(std::span(a));
              const std::uint64_t one = remote.new_stream(), two = remote.new_stream();
              const std::uint64_t begun = remote.new_event(), summed = remote.new_event();
              const std::uint64_t both[] = {array, array};
              remote.use_stream(one);
              remote.record(begun);
              const std::uint64_t sum = remote.run("add", both);
              remote.record(summed);
              remote.use_stream(two);
              remote.wait(summed);
              const std::uint64_t more[] = {sum, array};
              const std::uint64_t total = remote.run("add", more);
              std::vector<double> got(1000);
              remote.get(total, std::span(got));  // behind stream two, which is behind stream one
              for (std::size_t i = 0; i < got.size(); ++i) require_that(got[i] == 3 * a[i], "the sums");
              require_that(remote.since(summed, begun) >= 0, "the time between them");
              remote.await(summed);
              remote.run("nothing", both);
              expect_error([&] { remote.await(summed); }, ErrorKind::invalid_input, "the GPU: nothing: this server");
              expect_error([&] { remote.since(total, begun); }, ErrorKind::invalid_input, "was not recorded");
              remote.free(two);  // in use: what follows is in stream 0
              remote.free(begun);
              expect_error([&] { remote.await(begun); }, ErrorKind::invalid_input, "was not recorded");
              remote.get(remote.run("add", both), std::span(got));
              require_that(got[999] == 2000, "the sum in stream 0");
              remote.close();
              expect_error([&] { remote.use_stream(one); }, ErrorKind::invalid_input, "is closed");
            }),
            no_problems);
}

TEST(RemoteGpu, ArraysGoUnencryptedIfBothWantIt) {
  if (!ssl_library().usable()) GTEST_SKIP() << ssl_library().why_not();
  const WithVariable encrypt("WAYWISER_ENCRYPT", "1");
  const auto asks = [](RemoteGpu& remote) {
    remote.synchronize();
    require_that(remote.encrypted_by() == remote.data_encrypted_by(), "all is encrypted at first");
    remote.use_plain_data();
    require_that(!remote.encrypted_by().empty() && remote.data_encrypted_by().empty(), "requests only");
    remote.use_plain_data();
    compute_there(remote);
  };
  EXPECT_EQ(with_a_worker(asks, true, nullptr, "127.0.0.1"), no_problems);
  const auto is_refused = [](RemoteGpu& remote) {
    expect_error([&] { remote.use_plain_data(); }, ErrorKind::unavailable,
                 "unencrypted arrays: this server encrypts them: it was started without --data-plain");
    compute_there(remote);
  };
  EXPECT_EQ(with_a_worker(is_refused, true), no_problems);
  const auto of_one_machine = [](RemoteGpu& remote) {
    remote.use_plain_data();
    require_that(remote.encrypted_by().empty() && remote.data_encrypted_by().empty(), "nothing is encrypted");
    compute_there(remote);
  };
  EXPECT_EQ(with_a_worker(of_one_machine), no_problems);
}

// On one machine the server copies from and into the memory itself; elsewhere it is as any other.
void use_pinned_memory(RemoteGpu& remote, std::string_view by) {
  constexpr std::size_t count = 1'500'000;
  std::optional<PinnedMemory> memory = remote.pinned(count * sizeof(double));
  require_that(memory->by() == by || (by == "lock" && memory->by().empty()), "how it is pinned");
  const std::span<double> numbers(reinterpret_cast<double*>(memory->region().data), count);
  require_that(remote.pinned_by(numbers.data()) == memory->by() && remote.pinned_by(numbers.data() + count).empty(),
               "its addresses");
  require_that(std::ranges::all_of(numbers, [](double value) { return value == 0; }), "zeros");
  std::iota(numbers.begin(), numbers.end(), 1);
  const std::uint64_t array = remote.array(numbers.subspan(3));
  std::ranges::fill(numbers, -1);
  remote.put(array, 8, ConstElements(numbers.first(1)).region);
  const auto head = remote.get(array, numbers.first(count - 3));
  require_that(head.shape == std::vector<std::uint64_t>{count - 3}, "the shape");
  for (std::size_t i = 0; i + 3 < count; ++i)
    require_that(numbers[i] == (i == 1 ? -1 : 4 + static_cast<double>(i)), "element " + std::to_string(i));
  expect_error([&] { remote.get(array, numbers); }, ErrorKind::invalid_input, "for room of 1500000 float64");
  remote.free(array);
  expect_error([&] { remote.get(array, numbers); }, ErrorKind::invalid_input, "there is no array");
  memory.reset();
  for (int i = 0; i < 10; ++i) remote.pinned(memory_limit / 2);  // each goes at once, also at the server
  remote.synchronize();
}

TEST(RemoteGpu, PinnedMemory) {
  EXPECT_EQ(with_a_worker([](RemoteGpu& remote) { use_pinned_memory(remote, "server"); }), no_problems);
}

TEST(RemoteGpu, PinnedMemoryBetweenMachines) {
  EXPECT_EQ(with_a_worker([](RemoteGpu& remote) { use_pinned_memory(remote, "lock"); }, true), no_problems);
}

TEST(RemoteGpu, KernelsAreCompiledThereAndTheCompilersLinesComeBack) {
  FakeKernels kernels;
  const auto client = [](RemoteGpu& remote) {
    const std::uint64_t array = remote.zeros({DataType::float32, false, {5}});
    expect_error([&] { remote.load_kernels("wrong"); }, ErrorKind::invalid_input,
                 "the GPU: kernels: it does not compile\nsource.cu(1): error: ");
    expect_error([&] { remote.load_kernels(""); }, ErrorKind::invalid_input, "1 to 4194304 bytes");
    expect_error([&] { remote.load_kernels(std::string((4 << 20) + 1, ' ')); }, ErrorKind::invalid_input, "bytes");
    const std::uint64_t code = remote.load_kernels(std::string(4 << 20, ' '));
    const std::vector<KernelArgument> arguments{KernelArgument::of_array(array), KernelArgument::of_array(array),
                                                KernelArgument::of(2.f), KernelArgument::of(std::int32_t{5})};
    for (int i = 0; i < 2000; ++i) remote.launch(code, "axpy", {{2, 1, 1}, {64, 1, 1}, 0}, arguments);
    remote.synchronize();
    remote.launch(code, "other", {}, arguments);
    expect_error([&] { remote.synchronize(); }, ErrorKind::invalid_input, "the GPU: other: the code has no kernel");
    expect_error([&] { remote.launch(code, std::string(65, 'x'), {}, {}); }, ErrorKind::invalid_input, "64 bytes");
    expect_error([&] { remote.launch(code, "axpy", {}, std::vector<KernelArgument>(101)); }, ErrorKind::invalid_input,
                 "a kernel takes at most 100 arguments");
    remote.synchronize();
  };
  EXPECT_EQ(with_a_worker(client, false, &kernels), no_problems);
  EXPECT_EQ(with_a_worker(client, true, &kernels), no_problems);
}

}  // namespace
}  // namespace waywiser
