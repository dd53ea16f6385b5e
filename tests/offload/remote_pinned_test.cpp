#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/mapping.hpp"
#include "waywiser/offload/remote_gpu.hpp"
#include "waywiser/offload/serve_client.hpp"

namespace waywiser {
namespace {

constexpr Bytes limit_of_client = Bytes{64} << 20;

// No more address space than there is now, and some for small things.
void let_memory_be_scarce() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  rlimit limit{};
  require_that(::getrlimit(RLIMIT_AS, &limit) == 0, "the limit");
  limit.rlim_cur = pages * page_size() + (rlim_t{8} << 20);
  require_that(::setrlimit(RLIMIT_AS, &limit) == 0, "the limit");
}

// The server copies after the client's call has failed: the client does not see it, however little memory there is.
TEST(RemotePinnedMemory, IsNotTouchedAfterAFailure) {
  constexpr Bytes bytes_of_memory = Bytes{24} << 20;
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const auto tell = [&](int end) { require_that(::write(ends[end], "!", 1) == 1, "a word"); };
  const auto hear = [&](int end) {
    char word = 0;
    require_that(::read(ends[end], &word, 1) == 1, "a word");
  };
  TestRanks ranks(2);
  ranks.virtual_gpus = 1;
  ranks.timeout = 2;
  const Problems problems = ranks.in_processes([&](Group& group) {
    if (group.rank() == worker_rank) {
      RemoteWorker::Setup setup{group.platform(), gpu(0), limit_of_client, {}};
      setup.functions.names = {"waits"};
      setup.functions.call = [&](const auto&, auto arrays, const auto&) {
        hear(0);
        return FunctionResult{{arrays[0].head, arrays[0].memory, arrays[0].owner}, 0};
      };
      try {
        serve_client(group, setup, [](const WorkerState&) {});
      } catch (const Error&) {  // the client has left
      }
      tell(0);
      return;
    }
    RemoteGpu remote(std::move(group), "the GPU", limit_of_client);
    const PinnedMemory memory = remote.pinned(bytes_of_memory);
    std::byte* bytes = memory.region().data;
    std::fill_n(bytes, bytes_of_memory, std::byte{5});
    const std::uint64_t array = remote.array(ConstElements(memory.region(), DataType::uint8));
    std::fill_n(bytes, bytes_of_memory, std::byte{6});
    remote.run("waits", std::span(&array, 1));
    let_memory_be_scarce();
    const std::string why = error_of([&] { remote.get(array, Elements(memory.region(), DataType::uint8)); });
    require_that(why.find("get: ") != std::string::npos && why.find(": waited ") != std::string::npos, why);
    require_that(memory.by().empty(), "the server has it no more");
    tell(1);
    hear(1);
    require_that(std::all_of(bytes, bytes + bytes_of_memory, [](std::byte value) { return value == std::byte{6}; }),
                 "its bytes");
  });
  for (const int end : ends) ::close(end);
  EXPECT_EQ(problems, no_problems);
}

}  // namespace
}  // namespace waywiser
