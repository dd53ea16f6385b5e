#include "waywiser/base/started_thread.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/base/error_of.hpp"

namespace waywiser {
namespace {

constexpr int most_threads = 1000;  // more than can reuse stacks of ended threads

std::string words_of_the_last_thread() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) return "no limit";
  return error_of([&] {
    for (int i = 0; i < most_threads; ++i) started_thread([] { ::pause(); }).detach();
  });
}

// In a process of its own, which ends with its threads.
TEST(StartedThread, WithoutMemoryIsAnErrorOfThisLibrary) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends a process that has no memory";
#endif
  const pid_t child = ::fork();
  if (child == 0) ::_exit(words_of_the_last_thread().starts_with("no thread can be started: ") ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace waywiser
