#pragma once

#include <memory>
#include <string_view>

#include "waywiser/bench/bench_buffer.hpp"
#include "waywiser/bench/bench_request.hpp"
#include "waywiser/group/group.hpp"

namespace waywiser {

// The environment of an exercise.
struct Bench {
  Group& group;
  Platform& platform;

  Place place(std::string_view memory) const {
    return memory == "host" ? host(0) : gpu(group.rank() % platform.gpu_count());
  }
};

// The work of one rank in a benchmark. prepare and check are not timed.
class Exercise {
 public:
  // All ranks at the same time. Throws unavailable if calls on host memory should be enqueued.
  Exercise(const Bench& bench, const BenchRequest& request);
  Exercise(const Exercise&) = delete;
  Exercise& operator=(const Exercise&) = delete;
  virtual ~Exercise() = default;

  // Fills the sent arrays with different bytes for each sample, so that old data do not pass the check.
  virtual void prepare(std::uint64_t seed) = 0;
  // Complete when it returns. Throws unavailable if calls cannot be captured in a graph.
  virtual void run(int calls);
  // Throws corrupt if the received data differ from the data that the others have prepared.
  virtual void check() = 0;

 protected:
  virtual void call() = 0;
  virtual bool taking_part() const { return true; }
  bool enqueues() const { return stream_ != nullptr; }
  Stream* stream() const { return stream_.get(); }  // nullptr: calls are not enqueued
  // The mode of each call.
  Mode mode() const { return stream_ ? Mode::on(*stream_) : Mode::wait; }
  // For operations that only the host can do.
  void refuse_streams() const;

  Group& group_;
  const BenchRequest request_;

 private:
  void check_graphs() const;
  void capture(int calls);

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<StreamGraph> graph_;
  int captured_ = 0;
};

// All ranks make it at the same time. Throws invalid_input for an unknown operation.
std::unique_ptr<Exercise> make_exercise(const Bench& bench, const BenchRequest& request);
// nullptr: the calls are not those of kernels.
std::unique_ptr<Exercise> make_kernel_exercise(const Bench& bench, const BenchRequest& request);
// nullptr: the operation is not one of them.
std::unique_ptr<Exercise> make_message_exercise(const Bench& bench, const BenchRequest& request);
std::unique_ptr<Exercise> make_one_sided_exercise(const Bench& bench, const BenchRequest& request);
std::unique_ptr<Exercise> make_collective_exercise(const Bench& bench, const BenchRequest& request);

}  // namespace waywiser
