#pragma once

#include <memory>
#include <vector>

#include "waywiser/device/stream.hpp"
#include "waywiser/device/virtual_gpu/bus.hpp"

namespace waywiser {

class VirtualEvent : public Event {
 public:
  VirtualEvent(std::shared_ptr<Bus> bus, Place place) : bus_(std::move(bus)), place_(place) {}

  bool done() const override;
  void synchronize(Deadline deadline) const override;
  Seconds since(const Event& earlier) const override;
  Place place() const noexcept { return place_; }

  // The last recording; empty when there was none: the event counts as done.
  const std::shared_ptr<EventPoint>& point() const noexcept { return point_; }
  void recorded(std::shared_ptr<EventPoint> point) noexcept { point_ = std::move(point); }

 private:
  std::shared_ptr<Bus> bus_;
  Place place_;
  std::shared_ptr<EventPoint> point_;
};

class VirtualStream : public Stream {
 public:
  VirtualStream(std::shared_ptr<Bus> bus, Place place);
  ~VirtualStream() override;

  using Stream::reach;
  Place place() const override { return queue_->place(); }
  void copy(Region destination, ConstRegion source) override;
  const std::byte* reach(ConstRegion region) const override;
  void launch(const Kernel& kernel) override;
  void write_value(Region flag, std::uint64_t value) override;
  void wait_value(ConstRegion flag, std::uint64_t at_least) override;
  void call(std::function<void()> function) override;
  void record(Event& event) override;
  void wait(const Event& event) override;
  bool done() override;
  void synchronize(Deadline deadline) override;
  // Throws device when a kernel has trapped, as CUDA does.
  bool capturing() const override {
    if (bus_->trapped(place().index)) throw_trapped(place());
    return captured_ != nullptr;
  }
  // Copies, kernels, flags and calls; no events.
  std::unique_ptr<StreamGraph> capture(const std::function<void()>& enqueue) override;

 private:
  friend class VirtualGraph;
  Reached reach(ConstRegion region, Bus::Access access) const;
  void push(WorkItem item);

  static constexpr std::size_t most_reached = 64;

  std::shared_ptr<Bus> bus_;
  std::shared_ptr<WorkQueue> queue_;
  std::vector<WorkItem>* captured_ = nullptr;  // into which a graph is captured
  // What reach() gave since the last kernel, which keeps it: its memory may be freed before it runs, as CUDA waits in a
  // free. Without kernels the last ones.
  mutable std::vector<std::shared_ptr<const void>> reached_;
  std::unique_ptr<Worker> worker_;  // none when the scheduler is seeded
};

}  // namespace waywiser
