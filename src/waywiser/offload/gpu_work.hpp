#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/platform.hpp"
#include "waywiser/offload/remote_times.hpp"

namespace waywiser {

// The functions that a worker has begun on its GPU, and how long they take.
class GpuWork {
 public:
  GpuWork(Platform& platform, Place gpu, Seconds patience);
  GpuWork(const GpuWork&) = delete;
  GpuWork& operator=(const GpuWork&) = delete;
  ~GpuWork();  // waits as settle()

  Stream& stream() noexcept { return *stream_; }
  // Enqueues one function, which keeps `keeps` until it is over.
  template <typename Enqueue>
  void begin(Seconds now, std::shared_ptr<const void> keeps, Enqueue enqueue) {
    Part& part = next(now, std::move(keeps));
    stream_->record(*part.begin);
    try {
      enqueue(*stream_);
    } catch (...) {
      stream_->record(*part.end);  // both events are asked for the time between them
      throw;
    }
    stream_->record(*part.end);
  }
  // A call that is over: the function itself took `seconds` of it, outside of the stream.
  void add(Seconds begin, Seconds end, Seconds seconds);
  bool is_under_way() const noexcept { return since_ != 0; }
  // Memory that work under way may use.
  void keep(std::shared_ptr<const void> memory);
  // Waits until all of it is over. Throws timeout or device.
  void settle();

  const RemoteInterval& compute() const noexcept { return compute_; }
  const RemoteInterval& device() const noexcept { return device_; }

 private:
  struct Part {
    std::unique_ptr<Event> begin, end;
  };
  Part& next(Seconds now, std::shared_ptr<const void> keeps);

  Platform& platform_;
  Place gpu_;
  Seconds patience_;
  std::unique_ptr<Stream> stream_;
  std::vector<Part> parts_;  // the first `under_way_` of them; the rest is used again
  std::size_t under_way_ = 0;
  std::vector<std::shared_ptr<const void>> kept_;
  Seconds since_ = 0;  // the first function after the last settle(); 0: none
  RemoteInterval compute_, device_;
};

}  // namespace waywiser
