// If a peer is late, gone or in another call, a rank gets an error and never a result. On virtual GPUs.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <span>
#include <sstream>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "tests/comm/with_variable.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {
namespace {

constexpr Seconds much_patience = 40;  // much less than the timeouts that must not matter
constexpr float poison = -77;

// An array on the rank's GPU, and the stream on which it is used.
class FailingArray {
 public:
  FailingArray(Group& group, std::size_t count, float value)
      : place_(gpu_of_rank(group)),
        memory_(group.platform()->allocate(place_, count * sizeof(float), Allocation::gpu)),
        host_(group.platform()->allocate(host(0), count * sizeof(float), Allocation::pinned)),
        stream_(group.platform()->open_stream(place_)),
        count_(count) {
    fill(value);
    stream_->copy(region(), on_host());
    stream_->synchronize(Deadline::in(much_patience));
    fill(poison);
  }

  Elements elements(DataType type = DataType::float32) const { return {region(), type}; }
  Elements part(std::size_t count) const { return elements().slice(0, count); }
  Stream& stream() { return *stream_; }
  Place place() const { return place_; }
  // The array as a consumer of the stream sees it; on the host when the stream has ended.
  void enqueue_consumer() { stream_->copy(on_host(), region()); }
  bool consumed_nothing() const { return values_are(poison); }
  bool values_are(float value) const {
    return std::ranges::all_of(values(), [&](float each) { return each == value; });
  }

 private:
  Region region() const { return memory_.region().slice(0, count_ * sizeof(float)); }
  Region on_host() const { return host_.region().slice(0, count_ * sizeof(float)); }
  std::span<float> values() const { return {reinterpret_cast<float*>(host_.region().data), count_}; }
  void fill(float value) { std::ranges::fill(values(), value); }

  Place place_;
  Memory memory_, host_;
  std::unique_ptr<Stream> stream_;
  std::size_t count_;
};

// The text that a rank's process has written to stderr, and the error of its body.
class Story {
 public:
  // `apart`: each rank is on a machine of its own.
  explicit Story(int size, Seconds timeout, bool apart = false) : size_(size), ranks_(size) {
    ranks_.virtual_gpus = size;
    ranks_.machines_apart = apart;
    ranks_.timeout = timeout;
    std::string name = (std::filesystem::temp_directory_path() / "waywiser-story-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  Story(const Story&) = delete;
  Story& operator=(const Story&) = delete;
  ~Story() { std::filesystem::remove_all(folder_); }

  using Body = std::function<void(Group&)>;
  void run(const Body& body) {
    std::vector<TestRanks::Process> processes;
    for (int rank = 0; rank < size_; ++rank)
      processes.push_back(ranks_.start(rank, [&](int self) {
        if (std::freopen(file(self).c_str(), "w", stderr) == nullptr) throw Error(ErrorKind::io, "no file");
        std::setvbuf(stderr, nullptr, _IONBF, 0);
        Group group = Group::join(ranks_.options(self));
        body(group);
      }));
    for (const auto& process : processes) problems.push_back(TestRanks::wait(process));
  }
  std::string printed(int rank) const {
    std::ostringstream text;
    text << std::ifstream(file(rank)).rdbuf();
    return text.str();
  }

  std::vector<std::string> problems;  // by rank; empty: there was none

 private:
  std::string file(int rank) const { return folder_ + "/" + std::to_string(rank); }

  const int size_;
  TestRanks ranks_;
  std::string folder_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Waits until the group fails: this rank lives, but does not make the call.
void stay_away(Group& group) {
  group.set_timeout(much_patience);
  group.recv(std::span<int>(), 0);
}

// The host waits for the stream and knows nothing of the group, like torch.cuda.synchronize().
// The errors of virtual GPUs and of CUDA.
bool is_trap(const std::string& error) {
  return has(error, "a kernel has trapped") || has(error, "cudaErrorLaunchFailure");
}

void expect_no_result(Group& group, FailingArray& array, const std::string& why) {
  static_cast<void>(error_of([&] { array.enqueue_consumer(); }));  // raises once the kernel has trapped
  const std::string error = error_of([&] { array.stream().synchronize(Deadline::in(much_patience)); });
  require_that(is_trap(error), "a stream that has failed, not: " + error);
  require_that(array.consumed_nothing(), "nothing for the consumer");
  require_that(is_trap(error_of([&] { group.platform()->open_stream(array.place())->synchronize(Deadline::in(1)); })),
               "later calls fail as well");
  const std::string next =
      error_of([&] { group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream())); });
  require_that(has(next, why), "the group knows why, not: " + next);
}

// Faults: gpus T
TEST(GpuFailure, ARankThatIsLateIsAnErrorForWhoWaitsForTheStreamAlone) {
  Story story(2, 1);
  const std::string why = "rank 0: rank 1 did not send within 1.00 s in all_reduce #2 of 5000 float32, sum";
  story.run([&](Group& group) {
    FailingArray array(group, 5000, 1);
    group.barrier(Mode::on(array.stream()));
    group.synchronize(array.stream());
    if (group.rank() == 1) return stay_away(group);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    expect_no_result(group, array, why);
  });
  EXPECT_EQ(story.problems[0], "");
  EXPECT_TRUE(has(story.problems[1], why)) << story.problems[1];
  EXPECT_EQ(story.printed(0), "waywiser: " + why + "\n");
}

// Faults: gpus L
TEST(GpuFailure, ARankThatIsLateWithinTheTimeoutIsNoError) {
  Story story(2, much_patience);
  story.run([](Group& group) {
    FailingArray array(group, 5000, static_cast<float>(group.rank() + 1));
    group.barrier(Mode::on(array.stream()));
    // Rank 1 comes when rank 0 is known to wait on its GPU.
    if (group.rank() == 0) {
      group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
      for (int turn = 0; turn < 100 && !array.stream().done(); ++turn) ::usleep(1000);
      group.send(std::span<int>(), 1);
    } else {
      group.recv(std::span<int>(), 0);
      group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    }
    array.enqueue_consumer();
    array.stream().synchronize(Deadline::in(much_patience));
    require_that(array.values_are(3), "the sum");
  });
  EXPECT_EQ(story.problems, std::vector<std::string>(2));
  EXPECT_EQ(story.printed(0) + story.printed(1), "");
}

// Also in a part of a group, whose ranks are told as ranks of the job.
// Faults: gpus D
TEST(GpuFailure, ADeadRankIsKnownAtOnceToWhoWaitsForTheStreamAlone) {
  Story story(3, 600);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    std::optional<Group> part = group.split(group.rank() == 0 ? 0 : 1);
    if (group.rank() == 0) return stay_away(group);
    part->barrier(Mode::on(array.stream()));
    part->synchronize(array.stream());
    part->barrier();
    if (group.rank() == 2) {  // ends when rank 1 is known to wait on its GPU
      group.recv(std::span<int>(), 1);
      ::kill(::getpid(), SIGKILL);
    }
    part->all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    static_cast<void>(error_of([&] { group.send(std::span<int>(), 2); }));  // rank 2 may end before this returns
    expect_no_result(*part, array, "rank 2 (process");
  });
  EXPECT_EQ(story.problems[1], "");
  const std::string line = story.printed(1);
  EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  EXPECT_EQ(line.find("waywiser: rank 1 has given up all_reduce #2 of 5000 float32, sum while it waited for rank 2: "
                      "rank 2 (process"),
            0u)
      << line;
  EXPECT_TRUE(has(line, " is gone")) << line;
}

// Faults: gpus E
TEST(GpuFailure, TheLastOperationOfAProgram) {
  const auto last = [](const std::function<void(Group&)>& end) {
    Story story(2, 20);
    story.run([&](Group& group) {
      FailingArray array(group, 100, 1);
      group.barrier(Mode::on(array.stream()));
      group.synchronize(array.stream());
      if (group.rank() == 1) return stay_away(group);
      group.set_timeout(1);  // not earlier: a GPU takes its time to be opened
      group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
      end(group);
    });
    EXPECT_EQ(story.printed(0),
              "waywiser: rank 0: rank 1 did not send within 1.00 s in all_reduce #2 of 100 float32, sum\n");
    return story.problems[0];
  };
  EXPECT_EQ(last([](Group& group) { group.close(); }),
            "rank 0: rank 1 did not send within 1.00 s in all_reduce #2 of 100 float32, sum");
  EXPECT_EQ(last([](Group&) {}), "");  // a destructor cannot throw
}

// Faults: gpus T
TEST(GpuFailure, TheProcessEndsWhereThatIsWanted) {
  const WithVariable abort("WAYWISER_ON_FAILURE", "abort");
  Story story(2, 1);
  story.run([](Group& group) {
    FailingArray array(group, 100, 1);
    group.barrier(Mode::on(array.stream()));
    group.synchronize(array.stream());
    if (group.rank() == 1) return stay_away(group);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    ::sleep(static_cast<unsigned>(much_patience));
  });
  EXPECT_EQ(story.problems[0], "exit 1");
  EXPECT_TRUE(has(story.printed(0), "rank 1 did not send within")) << story.printed(0);
}

TEST(GpuFailure, WhatIsToBeDoneThenIsOneOfTwoThings) {
  const WithVariable wrong("WAYWISER_ON_FAILURE", "explode");
  EXPECT_TRUE(has(error_of([] { Group::join({}); }), "on_failure is 'raise' or 'abort', not 'explode'"));
}

// Both ranks call something on their streams; the host waits for the stream alone.
void expect_unlike(const std::function<void(Group&, FailingArray&)>& first,
                   const std::function<void(Group&, FailingArray&)>& second, const std::string& mine,
                   const std::string& theirs) {
  Story story(2, 600);
  story.run([&](Group& group) {
    FailingArray array(group, 3000000, 1);
    group.barrier(Mode::on(array.stream()));
    group.synchronize(array.stream());
    // The kernel may trap while more of the operation is enqueued, which raises then.
    static_cast<void>(error_of([&] { (group.rank() == 0 ? first : second)(group, array); }));
    expect_no_result(group, array, "");
  });
  // If two processes on one CUDA GPU trap at the same time, the driver can leave one of them waiting, which then ends.
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const std::string said = story.printed(static_cast<int>(rank));
    const bool has_ended = has(said, "the GPU has not ended the operation that has failed");
    EXPECT_EQ(story.problems[rank], tests_use_cuda() && has_ended ? "exit 1" : "") << said;
  }
  const std::string all = story.printed(0) + story.printed(1);
  EXPECT_TRUE(has(all, "rank 0 is in " + mine + ", but rank 1 is in " + theirs) ||
              has(all, "rank 1 is in " + theirs + ", but rank 0 is in " + mine))
      << all;
}

// Faults: gpus W
TEST(GpuFailure, RanksThatCallDifferentThingsAreToldSo) {
  const auto sum_of = [](std::size_t count, DataType type = DataType::float32) {
    return [=](Group& group, FailingArray& array) {
      const Elements part = array.elements(type).slice(0, count);
      group.all_reduce(part, part, ReduceOp::sum, Mode::on(array.stream()));
    };
  };
  const std::string hundred = "all_reduce #2 of 100 float32, sum";
  expect_unlike(sum_of(100), sum_of(2000000), hundred, "all_reduce #2 of 2000000 float32, sum");
  expect_unlike(sum_of(100), sum_of(100, DataType::int32), hundred, "all_reduce #2 of 100 int32, sum");
  expect_unlike(
      sum_of(100),
      [](Group& group, FailingArray& array) { group.broadcast(array.part(100), 1, Mode::on(array.stream())); }, hundred,
      "broadcast #2 of 100 float32, root 1");
}

// Faults: gpus P
TEST(GpuFailure, MessagesOfTwoSizesAreToldSo) {
  for (const auto& [sent, received] : {std::pair<std::size_t, std::size_t>{80, 100}, {3000000, 5001}}) {
    Story story(2, 600);
    story.run([&](Group& group) {
      FailingArray array(group, 3000000, 1);
      group.barrier(Mode::on(array.stream()));
      group.synchronize(array.stream());
      if (group.rank() == 0) {
        // The kernel may trap before the call is over, which raises then.
        static_cast<void>(error_of([&] { group.recv(array.part(received), 1, 0, Mode::on(array.stream())); }));
        return expect_no_result(group, array, "");
      }
      group.send(array.part(sent), 0, 0, Mode::on(array.stream()));
      stay_away(group);
    });
    EXPECT_EQ(story.problems[0], "");
    const std::string why = "rank 0 receives " + std::to_string(received) + " float32 from rank 1, which sends " +
                            std::to_string(sent) + " float32";
    EXPECT_EQ(story.printed(0), "waywiser: " + why + "\n");
    EXPECT_TRUE(has(story.problems[1], why)) << story.problems[1];
  }
}

// The waits for other ranks in the first calls of a group.
void set_up(Group& group, FailingArray& array) {
  group.barrier(Mode::on(array.stream()));
  group.all_reduce(array.part(1), array.part(1), ReduceOp::sum, Mode::on(array.stream()));
  group.synchronize(array.stream());
}

// Between machines the host carries it out, while the stream waits: a rank that is late, has died or is in another call
// never gives a result there either.
// Faults: gpus O
TEST(GpuFailure, ARankOfAnotherMachineThatIsLateIsAnErrorForWhoWaitsForTheStreamAlone) {
  using Operation = std::function<void(Group&, FailingArray&)>;
  const Operation all_reduce = [](Group& group, FailingArray& array) {
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
  };
  const Operation recv = [](Group& group, FailingArray& array) {
    group.recv(array.elements(), 1, 0, Mode::on(array.stream()));
  };
  const Operation send = [](Group& group, FailingArray& array) {
    group.send(array.elements(), 1, 0, Mode::on(array.stream()));
  };
  for (const auto& [operation, call, waits] :
       {std::tuple{all_reduce, "all_reduce #", "waiting for rank 1"}, std::tuple{recv, "recv #", "waiting for rank 1"},
        std::tuple{send, "send #", "bytes have not been taken"}}) {
    Story story(2, 1, true);
    story.run([&](Group& group) {
      FailingArray array(group, 500000, 1);  // no network keeps so much of a message on its way
      set_up(group, array);
      if (group.rank() == 1) return stay_away(group);
      operation(group, array);
      expect_no_result(group, array, "waited 1.00 s");
    });
    EXPECT_EQ(story.problems[0], "");
    EXPECT_TRUE(has(story.problems[1], "rank 0: waited 1.00 s in " + std::string(call))) << story.problems[1];
    const std::string line = story.printed(0);
    EXPECT_EQ(line.find("waywiser: rank 0 has given up " + std::string(call)), 0u) << line;
    EXPECT_TRUE(has(line, " on a stream: ")) << line;
    EXPECT_TRUE(has(line, waits)) << line;
    EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
  }
}

// Faults: gpus O
TEST(GpuFailure, ADeadRankOfAnotherMachineIsKnownAtOnceToWhoWaitsForTheStreamAlone) {
  Story story(2, 600, true);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    set_up(group, array);
    group.barrier();
    if (group.rank() == 1) ::kill(::getpid(), SIGKILL);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    expect_no_result(group, array, "rank 1 (process");
  });
  EXPECT_EQ(story.problems[0], "");
  const std::string line = story.printed(0);
  EXPECT_EQ(line.find("waywiser: rank 0 has given up all_reduce #"), 0u) << line;
  EXPECT_TRUE(has(line, "rank 1 (process") && has(line, " is gone")) << line;
}

// Faults: gpus O
TEST(GpuFailure, RanksOfTwoMachinesThatCallDifferentThingsAreToldSo) {
  Story story(2, 600, true);
  story.run([](Group& group) {
    FailingArray array(group, 5000, 1);
    set_up(group, array);
    const Elements part = array.part(group.rank() == 0 ? 100 : 200);
    static_cast<void>(error_of([&] { group.all_reduce(part, part, ReduceOp::sum, Mode::on(array.stream())); }));
    expect_no_result(group, array, "");
  });
  EXPECT_EQ(story.problems, std::vector<std::string>(2));
  const std::string all = story.printed(0) + story.printed(1);
  EXPECT_TRUE(has(all, "bytes where") && has(all, "were expected")) << all;
}

// Faults: gpus O
TEST(GpuFailure, TheLastOperationOfAProgramWithRanksOnTwoMachines) {
  Story story(2, 1, true);
  story.run([](Group& group) {
    FailingArray array(group, 100, 1);
    set_up(group, array);
    if (group.rank() == 1) return stay_away(group);
    group.all_reduce(array.elements(), array.elements(), ReduceOp::sum, Mode::on(array.stream()));
    group.close();
  });
  EXPECT_TRUE(has(story.problems[0], "waited 1.00 s in all_reduce #")) << story.problems[0];
  EXPECT_TRUE(has(story.printed(0), "waywiser: rank 0 has given up all_reduce #")) << story.printed(0);
}

}  // namespace
}  // namespace waywiser
