#pragma once

#include <memory>
#include <mutex>

#include "waywiser/device/platform.hpp"

namespace waywiser {

// Keeps the operations of one group on its GPU in order, whichever streams they are enqueued on.
class StreamOrder {
 public:
  StreamOrder(Platform& platform, Place gpu) : platform_(platform), gpu_(gpu), own_(platform.open_stream(gpu)) {}

  Platform& platform() const noexcept { return platform_; }
  Place gpu() const noexcept { return gpu_; }
  // For calls without a stream, complete or only begun.
  const std::shared_ptr<Stream>& own() const noexcept { return own_; }

  // Surround what is enqueued on a stream; the caller must keep graphs apart. Throws invalid_input: the stream is of
  // another GPU.
  void begin(Stream& stream);
  void end(Stream& stream);
  // What begins later, on another stream, begins after all that `stream` has now.
  void note(Stream& stream);
  // The end of what was noted last; nullptr: nothing. For the thread that enqueues.
  Event* last() const noexcept { return last_.get(); }

  // For any thread. Whether something is enqueued and has not ended; throws what the device reports.
  bool is_busy() const;
  // Whether device calls report a failure.
  bool is_gone() const;

 private:
  Platform& platform_;
  const Place gpu_;
  const std::shared_ptr<Stream> own_;
  mutable std::mutex mutex_;     // guards the setting of the following, for other threads
  std::unique_ptr<Event> last_;  // the end of the last operation
  void* last_native_ = nullptr;  // its stream
};

}  // namespace waywiser
