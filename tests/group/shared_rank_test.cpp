// Threads of a program that share a rank: JoinOptions::threads.
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <future>
#include <latch>
#include <thread>

#include "tests/comm/test_ranks.hpp"
#include "tests/group/in_call.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr int threads_of_rank = 4;

// Runs body(thread) in so many threads. Throws the first problem.
void in_threads_of_rank(int count, const std::function<void(int thread)>& body) {
  std::vector<std::string> problems(static_cast<std::size_t>(count));
  std::vector<std::thread> threads;
  for (int thread = 0; thread < count; ++thread)
    threads.emplace_back([&, thread] {
      try {
        body(thread);
      } catch (const std::exception& error) {
        problems[static_cast<std::size_t>(thread)] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& problem : problems) require_that(problem.empty(), problem);
}

// Calls of all kinds and sizes, with checked results.
void work_in(Group& group, int thread, int turns) {
  const int ranks = group.size(), me = group.rank(), right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
  std::vector<std::uint64_t> memory(64);
  const Window window = group.expose({reinterpret_cast<std::byte*>(memory.data()), 512, host(0)});
  for (int turn = 0; turn < turns; ++turn) {
    const std::size_t count = 1 + static_cast<std::size_t>(turn * 37 + thread * 1001) % 30000;
    const std::vector<double> mine(count, me + thread);
    std::vector<double> sum(count), got(count);
    group.all_reduce(std::span(mine), std::span(sum));
    require_that(sum == std::vector<double>(count, ranks * (ranks - 1) / 2.0 + ranks * thread), "a sum");
    Future receiving = group.recv(std::span(got), any_source, turn % 100, Mode::begin);
    group.send(std::span(mine), right, turn % 100);
    receiving.wait();
    require_that(got == std::vector<double>(count, left + thread), "a message");
    Future sums = group.all_reduce(std::span(mine), std::span(sum), ReduceOp::max, Mode::begin);
    while (!sums.done()) ::sched_yield();
    require_that(sum.back() == ranks - 1 + thread, "a maximum");
    window.signal(right, 8, static_cast<std::uint64_t>(turn) + 1);
    window.wait(8, static_cast<std::uint64_t>(turn) + 1);
  }
  group.flush();
  group.barrier();
}

struct Shape {
  int ranks;
  bool progress_thread, apart;
};

TEST(SharedRank, EachThreadHasItsGroupAndEverySumIsRight) {
  for (const Shape& shape :
       {Shape{2, false, false}, Shape{3, false, false}, Shape{2, true, false}, Shape{2, false, true}}) {
    TestRanks ranks(shape.ranks);
    ranks.timeout = 60;
    ranks.threads = true;
    ranks.progress_thread = shape.progress_thread;
    ranks.machines_apart = shape.apart;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      std::vector<Group> groups;
      for (int i = 0; i < threads_of_rank; ++i)
        groups.push_back(std::move(*group.split(0, i % 2 == 0 ? 0 : -group.rank())));
      in_threads_of_rank(threads_of_rank,
                         [&](int thread) { work_in(groups[static_cast<std::size_t>(thread)], thread, 25); });
      group.barrier();
    }),
              no_problems)
        << shape.ranks << " ranks" << (shape.progress_thread ? ", progress thread" : "")
        << (shape.apart ? ", apart" : "");
  }
}

// Also the groups that threads make of theirs at once have numbers of their own.
TEST(SharedRank, ThreadsMakeGroupsAtOnce) {
  TestRanks ranks(3);
  ranks.timeout = 60;
  ranks.threads = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < threads_of_rank; ++i) groups.push_back(std::move(*group.split(0)));
    in_threads_of_rank(threads_of_rank, [&](int thread) {
      std::vector<Group> kept;
      for (int turn = 0; turn < 20; ++turn) {
        std::optional<Group> part =
            groups[static_cast<std::size_t>(thread)].split(turn % 3 == 2 ? group.rank() % 2 : 0);
        std::vector<int> all(static_cast<std::size_t>(part->size()));
        const int mine = 1000 * thread + turn;
        part->all_gather(std::span(&mine, 1), std::span(all));
        require_that(all == std::vector<int>(all.size(), mine), "what ranks of this group have given");
        if (turn % 2 == 0) kept.push_back(std::move(*part));
      }
    });
    group.barrier();
  }),
            no_problems);
}

// Rank 1 does in order what the threads of rank 0 do at once: the first one waits all the time.
TEST(SharedRank, AThreadThatWaitsKeepsNobodyFromWorking) {
  for (const bool progress_thread : {false, true}) {
    TestRanks ranks(2);
    ranks.threads = true;
    ranks.progress_thread = progress_thread;
    EXPECT_EQ(ranks.in_processes([](Group& group) {
      Group first = std::move(*group.split(0)), second = std::move(*group.split(0));
      const int seven = 7;
      int got = 0;
      if (group.rank() == 1) {
        for (int turn = 0; turn < 50; ++turn) second.barrier();
        return first.send(std::span(&seven, 1), 0, 0).wait();
      }
      in_threads_of_rank(2, [&](int thread) {
        if (thread == 0) first.recv(std::span(&got, 1), 1);
        for (int turn = 0; thread == 1 && turn < 50; ++turn) second.barrier();
      });
      require_that(got == 7, "the message");
    }),
              no_problems);
  }
}

// The threads of rank 0 wait for what those of rank 1 give in the other order.
TEST(SharedRank, RanksMayServeTheirGroupsInAnyOrder) {
  TestRanks ranks(2);
  ranks.threads = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < threads_of_rank; ++i) groups.push_back(std::move(*group.split(0)));
    std::vector<std::promise<void>> begun(threads_of_rank);
    in_threads_of_rank(threads_of_rank, [&](int thread) {
      const int turn = group.rank() == 0 ? thread : threads_of_rank - 1 - thread;
      if (turn != 0) begun[static_cast<std::size_t>(turn - 1)].get_future().wait();
      begun[static_cast<std::size_t>(turn)].set_value();
      groups[static_cast<std::size_t>(thread)].barrier();
    });
  }),
            no_problems);
}

TEST(SharedRank, TwoThreadsInOneGroupAreRefusedAndTheOtherGoesOn) {
  TestRanks ranks(2);
  ranks.threads = true;
  std::promise<void> over;
  EXPECT_EQ(ranks.in_threads([&](Group& group) {
    Group part = std::move(*group.split(0));
    int got = 0;
    const int seven = 7;
    Window window = part.expose({});
    Future pending = part.recv(std::span(&got, 1), 1 - part.rank(), 5, Mode::begin);
    if (group.rank() == 1) {
      over.get_future().wait();
      part.send(std::span(&seven, 1), 0, 5);
      part.send(std::span(&seven, 1), 0);
    } else {
      in_threads_of_rank(2, [&](int thread) {
        int message = 0;
        if (thread == 0) {
          part.recv(std::span(&message, 1), 1);
          return require_that(message == 7, "the message of the call that was met");
        }
        wait_until_in(group, CallKind::recv);
        const std::function<void()> calls[] = {[&] { part.barrier(); }, [&] { part.split(0); }, [&] { pending.wait(); },
                                               [&] { window.wait(0, 0); },
                                               [&] { part.recv(std::span(&message, 1), 1); }};
        std::vector<std::string> said;
        for (const auto& call : calls) try {
            call();
            said.emplace_back("no error");
          } catch (const Error& error) {
            said.emplace_back(error.what());
          }
        std::string closing;
        try {
          group.close();
        } catch (const Error& error) {
          closing = error.what();
        }
        over.set_value();
        for (const std::string& each : said)
          require_that(each.find("another thread is in a call of this group") != std::string::npos, each);
        require_that(closing.find("close, while another thread is in recv") != std::string::npos, closing);
      });
      pending.wait();
      require_that(got == 7, "the future's message");
      part.send(std::span(&seven, 1), 1, 5);
    }
    if (group.rank() == 1) pending.wait();
    group.barrier();
  }),
            no_problems);
}

TEST(SharedRank, WhenARankDiesEveryThreadHears) {
  TestRanks ranks(2);
  ranks.timeout = 600;
  ranks.threads = true;
  const auto problems = ranks.in_processes([](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < threads_of_rank; ++i) groups.push_back(std::move(*group.split(0)));
    if (group.rank() == 1) {
      group.barrier();
      ::_exit(3);
    }
    group.barrier();
    std::vector<std::vector<double>> into(threads_of_rank, std::vector<double>(1 << 20));
    in_threads_of_rank(threads_of_rank, [&](int thread) {
      const auto at = static_cast<std::size_t>(thread);
      std::string why;
      try {
        groups[at].recv(std::span(into[at]), 1);
      } catch (const Error& error) {
        why = error.what();
      }
      require_that(why.find("rank 1 (process") != std::string::npos, "not: " + why);
    });
  });
  EXPECT_EQ(problems, (Problems{"rank 1: exit 3"}));
}

// One thread's call waits too long: the group fails, as without threads.
TEST(SharedRank, ATimeoutOfOneThreadEndsTheCallsOfAll) {
  TestRanks ranks(2);
  ranks.timeout = 1;
  ranks.threads = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < threads_of_rank; ++i) groups.push_back(std::move(*group.split(0)));
    in_threads_of_rank(threads_of_rank, [&](int thread) {
      int got = 0;
      std::string why;
      try {
        groups[static_cast<std::size_t>(thread)].recv(std::span(&got, 1), 1 - group.rank());
      } catch (const Error& error) {
        why = error.what();
      }
      require_that(why.find("waited 1") != std::string::npos, "not: " + why);
    });
  }),
            no_problems);
}

TEST(SharedRank, ThreadsUseVirtualGpusAtOnce) {
  TestRanks ranks(2);
  ranks.virtual_gpus = 2;
  ranks.threads = true;
  EXPECT_EQ(ranks.in_processes([](Group& group) {
    std::vector<Group> groups;
    for (int i = 0; i < 2; ++i) groups.push_back(std::move(*group.split(0)));
    in_threads_of_rank(2, [&](int thread) {
      Group& mine = groups[static_cast<std::size_t>(thread)];
      const Place gpu = gpu_of_rank(group);
      const auto stream = group.platform()->open_stream(gpu);
      const Memory memory = group.platform()->allocate(gpu, 8000, Allocation::gpu);
      std::vector<double> ones(1000, 1 + thread), sum(1000);
      const Elements array(memory.region().slice(0, 8000), DataType::float64);
      const Region there{reinterpret_cast<std::byte*>(sum.data()), 8000, host(0)};
      for (int turn = 0; turn < 10; ++turn) {
        stream->copy(memory.region(), {reinterpret_cast<const std::byte*>(ones.data()), 8000, host(0)});
        if (turn % 2 != 0) stream->synchronize(Deadline::in(20));  // as a call without a stream wants it
        mine.all_reduce(array, array, ReduceOp::sum, turn % 2 == 0 ? Mode::on(*stream) : Mode::wait);
        mine.synchronize(*stream);
        stream->copy(there, memory.region());
        stream->synchronize(Deadline::in(20));
        require_that(sum == std::vector<double>(1000, 2 + 2 * thread), "a sum on a virtual GPU");
      }
    });
  }),
            no_problems);
}

}  // namespace
}  // namespace waywiser
