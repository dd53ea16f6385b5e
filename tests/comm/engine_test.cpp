// The engine alone: it moves messages.
#include "waywiser/comm/session/engine.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/job_network.hpp"

namespace waywiser {
namespace {

// Two ranks of this machine, without mailboxes.
std::vector<Introduction> two_introductions(const std::vector<std::byte>& first, const std::vector<std::byte>& second) {
  std::vector<Introduction> both(2);
  both[0].address = first;
  both[1].rank = 1;
  both[1].address = second;
  for (Introduction& each : both) each.machine_id = "here";
  return both;
}

std::vector<std::byte> exchanged(int line, const std::vector<std::byte>& mine) {
  std::vector<std::byte> theirs(mine.size());
  require_that(::write(line, mine.data(), mine.size()) == static_cast<ssize_t>(mine.size()), "the address to be told");
  require_that(::recv(line, theirs.data(), theirs.size(), MSG_WAITALL) == static_cast<ssize_t>(theirs.size()),
               "an address as long");
  return theirs;
}

// UCX's first message of a process is there, and that process is not: UCX crashes where it must attach to its memory.
TEST(EngineOfRanks, APeerThatHasEndedBeforeTheConnectionIsAnErrorAndNoCrash) {
  const WithVariable variable("WAYWISER_MAILBOX", "off");
  const TestRanks ranks(2);
  std::array<int, 2> line{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, line.data()), 0);
  const auto dies = ranks.start(0, [&](int) {
    ::close(line[1]);
    Engine engine(2, job_network(*ranks.options(0).launch, nullptr).settings);
    engine.introduce(two_introductions(engine.ucx().address(), exchanged(line[0], engine.ucx().address())), 0);
    const std::vector<std::byte> data(1 << 20);
    Message message;
    engine.send(1, 1, data.data(), data.size(), message);
    for (int turn = 0; turn < 1000; ++turn) engine.progress();
    ::_exit(0);
  });
  const auto lives = ranks.start(1, [&](int) {
    ::close(line[0]);
    Engine engine(2, job_network(*ranks.options(0).launch, nullptr).settings);
    const std::vector<std::byte> theirs = exchanged(line[1], engine.ucx().address());
    std::vector<std::byte> data(1 << 20);
    require_that(::recv(line[1], data.data(), 1, 0) == 0, "the other's end");
    engine.introduce(two_introductions(theirs, engine.ucx().address()), 1);
    Message message;
    std::string problem;
    try {
      engine.receive(0, 1, data.data(), data.size(), message);
    } catch (const Error& error) {
      problem = error.what();
    }
    for (int turn = 0; turn < 1000; ++turn) engine.progress();
    require_that(problem.starts_with("UCX cannot connect to rank 0: "), "an error, not '" + problem + "'");
  });
  for (const int end : line) ::close(end);
  EXPECT_EQ(TestRanks::wait(dies), "");
  EXPECT_EQ(TestRanks::wait(lives), "");
}

}  // namespace
}  // namespace waywiser
