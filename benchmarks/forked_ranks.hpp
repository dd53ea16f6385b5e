#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <vector>

namespace waywiser {

// Runs `run` as rank 0 here and as the other ranks in children, which are forked first: nothing may have touched CUDA.
// Returns, in all of them, what main() should: not 0 if any has failed, with a line on standard error. A child that a
// signal ended has failed.
inline int forked_ranks(const char* program, int ranks, const std::function<int(int rank)>& run) {
  const auto code_of = [&](int rank) {
    try {
      return run(rank);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: rank %d: %s\n", program, rank, error.what());
      return 1;
    }
  };
  std::fflush(stdout);
  std::vector<pid_t> children;
  for (int rank = 1; rank < ranks; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) return code_of(rank);
    if (child < 0) {
      std::perror(program);
      for (const pid_t started : children) ::kill(started, SIGKILL);
      return 1;
    }
    children.push_back(child);
  }
  int code = code_of(0);
  for (std::size_t i = 0; i < children.size(); ++i) {
    int status = 0;
    if (::waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    std::fprintf(stderr, "%s: rank %zu has failed\n", program, i + 1);
    if (code == 0) code = 1;
  }
  return code;
}

}  // namespace waywiser
