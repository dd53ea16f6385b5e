#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Copies between ranks in steps. In each step a rank copies to others (push), meets them (nod: all copies of this step
// have arrived, and all have taken what came in the step before), and takes what has arrived, while the next steps are
// on their way. Step s uses slot s % slots of the receivers' memory.
class CopyPipeline {
 public:
  static constexpr std::size_t slots = 4;
  static constexpr Bytes alignment = 4096;
  static Bytes aligned(Bytes bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  // The size of the pieces of so many bytes: at least `pieces`, each of at most `most` bytes.
  static Bytes piece(Bytes bytes, Bytes pieces, Bytes most) {
    return std::clamp(aligned((bytes + pieces - 1) / pieces), alignment, most);
  }

  // What a rank enqueues; the streams are the pipeline's.
  struct Work {
    std::size_t steps = 0;
    std::function<void(Stream&)> nod;
    std::function<void(std::size_t step, Stream&)> push, take;
    std::function<int(std::size_t step)> after = [](std::size_t) { return -1; };  // the step that must be taken before
  };

  CopyPipeline(Platform& platform, Place gpu);

  // Begins after what `stream` has. What is enqueued on takes() before begins together with it.
  void begin(Stream& stream);
  Stream& takes() { return *takes_.stream; }
  // Nothing that is enqueued waits for what is enqueued later: streams may share a queue of the GPU.
  void run(const Work& work);
  // What `stream` has next begins when this rank's part has ended.
  void join(Stream& stream);

 private:
  // A stream, and an event for each of its last steps.
  struct Lane {
    std::unique_ptr<Stream> stream;
    std::array<std::unique_ptr<Event>, slots> ends;

    Event& end_of(std::size_t step) const { return *ends[step % slots]; }
  };

  void step(const Work& work, std::size_t step);

  // Two lanes of copies: one begins before the other has ended.
  std::array<Lane, 2> copies_;
  Lane nods_, takes_;
  std::unique_ptr<Event> begin_, met_, end_;
};

}  // namespace waywiser
