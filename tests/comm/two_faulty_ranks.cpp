#include "tests/comm/two_faulty_ranks.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"

namespace waywiser {
namespace {

constexpr Seconds longest_case = 60;
constexpr std::size_t longest_text = 1000;

// Shared by the test and both ranks.
struct Board {
  std::atomic<bool> second_has_stopped;
  std::array<std::atomic<bool>, 2> settled;  // or ended
  std::array<std::array<char, longest_text>, 2> problems;
};

Board* make_board() {
  return static_cast<Board*>(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

struct Process {
  pid_t id = -1;
  int errors = -1;
  bool has_ended = false;
};

void wait_for(const std::atomic<bool>& flag) {
  for (const Deadline deadline = Deadline::in(longest_case); !flag && !deadline.passed();) ::usleep(500);
}

Process start(const TestRanks& ranks, int rank, Board& board, const TwoFaultyRanks::Body& body,
              const std::string& fault) {
  Process process;
  process.errors = ::memfd_create("errors", 0);
  process.id = ::fork();
  if (process.id != 0) return process;
  ::dup2(process.errors, STDERR_FILENO);
  const auto self = static_cast<std::size_t>(rank);
  try {
    JoinOptions options = ranks.options(rank);
    options.letting_go = 0.3;
    options.timeout = longest_case;
    if (rank == 0) options.interrupted = [&] { return board.second_has_stopped.load(); };
    Group group = Group::join(options);
    body({group,
          [&] {
            if (rank == 0) return;
            ::setenv("WAYWISER_FAULT", fault.c_str(), 1);
            arm_faults();
          },
          [&] {
            board.settled[self] = true;
            wait_for(board.settled[1 - self]);
          }});
  } catch (const std::exception& problem) {
    std::strncpy(board.problems[self].data(), problem.what(), longest_text - 1);
    ::_exit(1);
  }
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

void look(Process& process, RankEnd& end, bool* stopped) {
  int status = 0;
  if (process.has_ended || ::waitpid(process.id, &status, WNOHANG | WUNTRACED) != process.id) return;
  if (WIFSTOPPED(status)) {
    if (stopped != nullptr) *stopped = true;
    return;
  }
  process.has_ended = true;
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
  std::array<char, longest_text> text{};
  const ssize_t got = ::pread(process.errors, text.data(), text.size() - 1, 0);
  if (got > 0) end.errors.assign(text.data(), static_cast<std::size_t>(got));
  ::close(process.errors);
}

}  // namespace

void TwoFaultyRanks::run(const Body& body) {
  TestRanks ranks(2);
  ranks.virtual_gpus = virtual_gpus;
  Board* const board = make_board();
  Process one = start(ranks, 0, *board, body, fault_), other = start(ranks, 1, *board, body, fault_);
  bool went_on = false;
  for (const Deadline deadline = Deadline::in(2 * longest_case); !one.has_ended || !other.has_ended; ::usleep(500)) {
    look(one, first, nullptr);
    look(other, second, &stopped);
    if (one.has_ended) board->settled[0] = true;
    if (other.has_ended) board->settled[1] = true;
    board->second_has_stopped = stopped;
    if (stopped && !went_on && board->settled[0]) {
      went_on = true;
      ::kill(other.id, SIGCONT);
    }
    if (!deadline.passed()) continue;
    for (const Process& late : {one, other})
      if (!late.has_ended) ::kill(late.id, SIGKILL);
  }
  first.problem = board->problems[0].data();
  second.problem = board->problems[1].data();
  ::munmap(board, sizeof *board);
}

}  // namespace waywiser
