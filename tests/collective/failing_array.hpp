#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <sstream>
#include <string>

#include "tests/base/error_of.hpp"
#include "tests/comm/test_ranks.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"

namespace waywiser {

constexpr Seconds much_patience = 40;  // much less than the timeouts that must not matter
constexpr float poison = -77;

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

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
  bool is_spoilt() const {
    return std::ranges::all_of(values(), [](float each) { return std::isnan(each); });
  }
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

// Waits until the group fails: this rank lives, but does not make the call.
inline void stay_away(Group& group) {
  group.set_timeout(much_patience);
  group.recv(std::span<int>(), 0);
}

// The host waits for the stream and knows nothing of the group, like torch.cuda.synchronize().
// The errors of virtual GPUs and of CUDA.
inline bool is_trap(const std::string& error) {
  return has(error, "a kernel has trapped") || has(error, "cudaErrorLaunchFailure");
}

inline void expect_no_result(Group& group, FailingArray& array, const std::string& why) {
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

// The waits for other ranks in the first calls of a group.
inline void set_up(Group& group, FailingArray& array, const std::function<void()>& more = [] {}) {
  const Seconds of_the_test = group.timeout();
  group.set_timeout(much_patience);  // nobody stays away yet, however busy the machine is
  group.barrier(Mode::on(array.stream()));
  group.all_reduce(array.part(1), array.part(1), ReduceOp::sum, Mode::on(array.stream()));
  more();
  group.synchronize(array.stream());
  group.set_timeout(of_the_test);
}

}  // namespace waywiser
