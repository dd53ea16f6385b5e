#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>

namespace waywiser {

// Runs `run` as rank 0 here and as rank 1 in a child. Returns, in both, what main() should: not 0 when either has
// failed, with a line on standard error. A child that a signal ended has failed.
inline int two_ranks(const char* program, const std::function<int(int rank)>& run) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child < 0) {
    std::perror(program);
    return 1;
  }
  int code = 1;
  try {
    code = run(child == 0 ? 1 : 0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
  }
  if (child == 0) return code;
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    std::fprintf(stderr, "%s: rank 1 has failed\n", program);
    return code != 0 ? code : 1;
  }
  return code;
}

}  // namespace waywiser
