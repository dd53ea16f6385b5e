// A call that throws without harm to the group leaves nothing behind that `waywiser status` would show.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/base/json.hpp"
#include "waywiser/comm/bootstrap/runtime_folder.hpp"
#include "waywiser/comm/bootstrap/unix_socket.hpp"

namespace waywiser {
namespace {

constexpr int longest_answer_ms = 10000;

// The call that rank 0 of this process reports; empty: none.
std::string call_in_status() {
  const Descriptor socket = connect_at(runtime_folder() / ("rank-" + std::to_string(::getpid()) + "-0.sock"));
  std::string line;
  std::array<char, 512> part{};
  for (ssize_t got = 1; got > 0; line.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)))) {
    pollfd ready{socket.number(), POLLIN, 0};
    if (::poll(&ready, 1, longest_answer_ms) != 1) break;
    got = ::recv(socket.number(), part.data(), part.size(), 0);
  }
  const Json status = Json::parse(line);
  return status.at("call").is_null() ? "" : status.at("call").get<std::string>();
}

// There is no platform: every call that wants one is refused, after it has begun.
const Region on_no_gpu{nullptr, 8, gpu(0)};

void expect_no_trace(const std::string& what, const std::function<void()>& call) {
  EXPECT_THROW(call(), Error) << what;
  EXPECT_EQ(call_in_status(), "") << what;
}

TEST(StatusAfterError, ShowsNoCallThatHasThrown) {
  EXPECT_EQ(TestRanks(2).in_threads([](Group& group) {
    std::vector<std::byte> memory(64);
    const Window window = group.expose({memory.data(), memory.size(), host(0)});
    const Elements array(on_no_gpu, DataType::float32);
    const auto all_reduce = [&] { static_cast<void>(group.all_reduce(array, array, ReduceOp::sum, Mode::begin)); };
    if (group.rank() == 0) {
      expect_no_trace("put", [&] { window.put(on_no_gpu, 0, 0); });
      expect_no_trace("get", [&] { window.get(on_no_gpu, 0, 0); });
      expect_no_trace("send", [&] { group.send(array, 1); });
      expect_no_trace("recv", [&] { group.recv(array, 1); });
      expect_no_trace("all_reduce", all_reduce);
    } else {
      EXPECT_THROW(all_reduce(), Error);  // a collective is one at all ranks
    }
    group.barrier();
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
