#pragma once

#include "waywiser/device/stream.hpp"

namespace waywiser {

// A time of the host's clock.
class HostEvent : public Event {
 public:
  bool done() const override { return true; }
  void synchronize(Deadline) const override {}
  Seconds since(const Event& earlier) const override;
  void set() { at_ = now_seconds(); }

 private:
  Seconds at_ = 0;
};

// Inline: each call has finished when it returns, so there is never anything to wait for. wait_value() takes no
// deadline: it times out after `wait_limit`.
class HostStream : public Stream {
 public:
  explicit HostStream(Place place, Seconds wait_limit = 60) : place_(place), wait_limit_(wait_limit) {}

  using Stream::reach;
  Place place() const override { return place_; }
  void copy(Region destination, ConstRegion source) override;
  const std::byte* reach(ConstRegion region) const override;
  void launch(const Kernel& kernel) override;
  void write_value(Region flag, std::uint64_t value) override;
  void wait_value(ConstRegion flag, std::uint64_t at_least) override;
  void call(std::function<void()> function) override { function(); }
  void record(Event& event) override;
  void wait(const Event& event) override;
  bool done() override { return true; }
  void synchronize(Deadline) override {}

 private:
  Place place_;
  Seconds wait_limit_;
};

// A flag of write_value and wait_value: throws invalid_input unless it is 8 aligned bytes.
void check_flag(ConstRegion flag);
void store_flag(std::byte* flag, std::uint64_t value);
std::uint64_t load_flag(const std::byte* flag);

}  // namespace waywiser
