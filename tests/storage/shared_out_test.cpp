#include "waywiser/storage/shared_out.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

TEST(ShareOut, EveryOneIsDoneOnceByWorkersThatCountFromZero) {
  for (const unsigned threads : {1u, 2u, 5u, 40u}) {
    std::vector<std::atomic<int>> done(1000);
    std::atomic<unsigned> highest{0};
    share_out(done.size(), threads, [&](unsigned worker, std::size_t i) {
      ++done[i];
      for (unsigned seen = highest; worker > seen && !highest.compare_exchange_weak(seen, worker);) continue;
    });
    for (const auto& each : done) ASSERT_EQ(each, 1) << threads;
    EXPECT_LT(highest, threads);
  }
  share_out(0, 4, [](unsigned, std::size_t) { FAIL(); });
}

TEST(ShareOut, WhatOneThrowsFirstIsThrownAndTheOthersTakeNoMore) {
  std::latch both(2);
  std::atomic<int> begun{0};
  EXPECT_THROW(share_out(1000, 2,
                         [&](unsigned, std::size_t i) {
                           ++begun;
                           if (i < 2) both.arrive_and_wait();
                           throw Error(ErrorKind::io, "cannot");
                         }),
               Error);
  EXPECT_EQ(begun, 2);
}

// Numbers of threads that three at once came by in `calls` calls.
std::size_t threads_of(int calls) {
  std::mutex lock;
  std::set<std::thread::id> ids;
  for (int call = 0; call < calls; ++call) {
    std::latch all(3);
    share_out(3, 3, [&](unsigned, std::size_t) {
      {
        const std::lock_guard guard(lock);
        ids.insert(std::this_thread::get_id());
      }
      all.arrive_and_wait();
    });
  }
  return ids.size();
}

TEST(ShareOut, ThreadsStayForLaterCallsAndAForkedProcessHasItsOwn) {
  EXPECT_GE(threads_of(1), 3u);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(threads_of(50) == 3 ? 0 : 1);
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(ShareOut, AWorkerMayShareOut) {
  std::atomic<int> done{0};
  share_out(8, 4, [&](unsigned, std::size_t) { share_out(8, 4, [&](unsigned, std::size_t) { ++done; }); });
  EXPECT_EQ(done, 64);
}

}  // namespace
}  // namespace waywiser
