#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/device/platform.hpp"
#include "waywiser/offload/remote_times.hpp"

namespace waywiser {

// What a worker has begun on its GPU, and how long it takes: functions in streams, and events. The client numbers both.
// Stream 0 is always there, and ordered with all others as CUDA's default stream is: what begins there waits for all
// that has begun before, and what begins elsewhere later waits for it.
class GpuWork {
 public:
  using Kept = std::shared_ptr<const void>;

  GpuWork(Platform& platform, Place gpu, Seconds patience);
  GpuWork(const GpuWork&) = delete;
  GpuWork& operator=(const GpuWork&) = delete;
  ~GpuWork();  // waits as settle_all()

  // What follows is in this stream, which is made if it is new. Throws invalid_input for too many; then it is in
  // stream 0.
  void use(std::uint64_t stream);
  // Enqueues one function in the stream, which keeps `keeps` until it is over. `call`: its name, for errors. Functions
  // with nothing between them in their stream are timed together, as one part, until pause().
  template <typename Enqueue>
  void begin(std::string_view call, Seconds now, std::span<const Kept> keeps, Enqueue enqueue) {
    enter_part(call, now, keeps);
    enqueue(*current_->stream);
  }
  // Nothing else is known to come at once.
  void pause();
  // Enqueues a copy in the stream, which has no time of its own.
  template <typename Enqueue>
  void carry(const Kept& keeps, Enqueue enqueue) {
    end_part(*current_);
    keep({&keeps, 1});
    enqueue(*current_->stream);
  }
  // A call that is over: the function itself took `seconds` of it, outside of the streams.
  void add(Seconds begin, Seconds end, Seconds seconds);
  bool is_under_way() const;
  // Waits until all of the stream is over, and all of stream 0 that it is behind; in stream 0 all of all streams.
  // Throws timeout or device.
  void settle();
  void settle_all();
  // Adds the times of what has been settled to device(). Throws device.
  void collect();

  // Events. Throw invalid_input for one that was not recorded, and for too many.
  void record(std::uint64_t event);
  void wait(std::uint64_t event);                             // the stream waits
  void await(std::uint64_t event);                            // this thread waits. Throws timeout or device
  Seconds since(std::uint64_t later, std::uint64_t earlier);  // of the GPU; waits for both
  // A stream or an event is not used any more. False: there is none.
  bool forget(std::uint64_t number);

  // Of all streams together.
  const RemoteInterval& compute() const noexcept { return compute_; }
  const RemoteInterval& device() const noexcept { return device_; }

 private:
  struct Part {
    std::unique_ptr<Event> begin, end;
    std::vector<std::string> calls;  // their names
  };
  struct Lane {
    std::unique_ptr<Stream> stream;
    Region flag;  // the last `turn` that is over
    std::uint64_t turn = 0;
    std::unique_ptr<Event> mark;  // for other streams to wait for
    std::vector<Part> parts;      // the first `under_way` of them; the rest is used again
    std::size_t under_way = 0;
    std::size_t settled = 0;  // parts, the first ones, whose times have not been collected; then none is under way
    bool in_part = false;     // the last part has no end yet
    std::vector<Kept> kept;
    std::size_t calls = 0;  // since the last settle()
    Seconds since = 0;      // the first function after the last settle(); 0: none
    // How often something was enqueued, how much of it is over, how much of it stream 0 waits for, and for how much of
    // stream 0 it waits.
    std::uint64_t enqueued = 0, over = 0, known = 0, knows = 0;
  };
  Lane& first() { return *lanes_.front(); }
  std::unique_ptr<Lane> open_lane() const;
  Lane& free_lane();
  void enter();  // the current lane waits for what it is ordered behind
  void wait_for(Lane& waiting, Lane& other);
  void keep(std::span<const Kept> keeps);
  void enter_part(std::string_view call, Seconds now, std::span<const Kept> keeps);
  static void end_part(Lane& lane);
  void collect(Lane& lane);
  void wait_for_end(Lane& lane) const;
  void settle(Lane& lane);
  std::string calls_under_way() const;
  // Adds the calls under way to an error.
  template <typename Wait>
  void told_with_calls(Wait wait);
  Event& find(std::uint64_t event) const;

  Platform& platform_;
  Place gpu_;
  Seconds patience_;
  Memory flags_;  // of all streams, in host memory; freed after them
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::map<std::uint64_t, Lane*> numbered_;
  Lane* current_;
  std::map<std::uint64_t, std::unique_ptr<Event>> events_;
  RemoteInterval compute_, device_;
};

}  // namespace waywiser
