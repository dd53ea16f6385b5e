#include "waywiser/device/host_stream.hpp"

#include <atomic>
#include <cstring>
#include <thread>

#include "waywiser/base/error.hpp"

namespace waywiser {

Seconds HostEvent::since(const Event& earlier) const {
  const auto* other = dynamic_cast<const HostEvent*>(&earlier);
  if (other == nullptr) throw Error(ErrorKind::invalid_input, "time between events of a host and of another stream");
  return at_ - other->at_;
}

const std::byte* HostStream::reach(ConstRegion region) const {
  if (region.place.is_gpu())
    throw Error(ErrorKind::device, "the host cannot touch the memory of " + text(region.place));
  return region.data;
}

void HostStream::copy(Region destination, ConstRegion source) {
  check_put(destination, source);
  std::byte* to = reach(destination);
  const std::byte* from = reach(source);
  if (source.bytes != 0) std::memcpy(to, from, source.bytes);
}

void HostStream::launch(const Kernel&) {
  throw Error(ErrorKind::unavailable, "a kernel cannot run on the stream of " + text(place_));
}

void HostStream::write_value(Region flag, std::uint64_t value) {
  check_flag(flag);
  store_flag(reach(flag), value);
}

void HostStream::wait_value(ConstRegion flag, std::uint64_t at_least) {
  check_flag(flag);
  const std::byte* address = reach(flag);
  const Deadline deadline = Deadline::in(wait_limit_);
  for (unsigned turn = 0; load_flag(address) < at_least; ++turn) {
    if (turn < 1000) continue;
    std::this_thread::yield();
    if (turn % 64 == 0 && deadline.passed())
      throw Error(ErrorKind::timeout, "a flag in " + text(flag.place) + " holds " + std::to_string(load_flag(address)) +
                                          ", not " + std::to_string(at_least) + ", after " +
                                          format_seconds(wait_limit_));
  }
}

void HostStream::record(Event& event) {
  auto* mine = dynamic_cast<HostEvent*>(&event);
  if (mine == nullptr)
    throw Error(ErrorKind::invalid_input, "an event of a GPU recorded on the stream of " + text(place_));
  mine->set();
}

void HostStream::wait(const Event& event) { event.synchronize(Deadline::in(wait_limit_)); }

void check_flag(ConstRegion flag) {
  if (flag.bytes != 8 || reinterpret_cast<std::uintptr_t>(flag.data) % 8 != 0)
    throw Error(ErrorKind::invalid_input, "a flag must be 8 bytes at an 8-byte aligned address");
}

void store_flag(std::byte* flag, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(flag)).store(value, std::memory_order_release);
}

std::uint64_t load_flag(const std::byte* flag) {
  auto* word = reinterpret_cast<std::uint64_t*>(const_cast<std::byte*>(flag));
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

}  // namespace waywiser
