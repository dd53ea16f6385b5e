#include "waywiser/transport/courier/gpu_end.hpp"

#include <cstddef>
#include <cstring>

#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

std::uint32_t parts(Bytes bytes) { return static_cast<std::uint32_t>((bytes + staged_bytes - 1) / staged_bytes); }

}  // namespace

GpuEnd::GpuEnd(const Path& path, PeerChannel& peer, Platform& platform, std::shared_ptr<const Memory> memory,
               const CourierOptions& options)
    : PairEnd(path, peer),
      options_(options),
      desk_(*reinterpret_cast<Desk*>(memory->region().data)),
      up_(platform, path.source, memory, offsetof(Desk, up), options),
      down_(platform, path.source, memory, offsetof(Desk, down), options) {}

void GpuEnd::put(Region destination, ConstRegion source, Stream& stream) {
  check(destination, source, stream);
  if (source.bytes != 0) sends_.push_back({down_.stream().reach(source), source.bytes});
  progress();
}

void GpuEnd::signal(Region, std::uint64_t value, Stream& stream) {
  check(stream);
  sends_.push_back({nullptr, sizeof value, 0, 0, value});
  progress();
}

void GpuEnd::accept(Region destination, Stream& stream) {
  check(stream);
  if (destination.bytes == 0) return;
  const Deadline deadline = Deadline::in(options_.patience);
  wait([this] { return awaited_.size() < Desk::rooms; }, deadline);
  desk_.room[accepted_ % Desk::rooms] = {reinterpret_cast<std::uint64_t>(up_.stream().reach(destination)),
                                         destination.bytes};
  awaited_.push_back(expected_ += parts(destination.bytes));
  up_.ensure_running(deadline);
  write(desk_.accepted, ++accepted_);
}

void GpuEnd::rest() {
  const Deadline deadline = Deadline::in(options_.patience);
  up_.end(deadline);
  down_.end(deadline);
}

// Either kernel may have parked before its message came.
void GpuEnd::look_after(Deadline deadline) {
  if (!awaited_.empty()) up_.attend(deadline);
  if (!sends_.empty()) down_.attend(deadline);
}

void GpuEnd::progress() {
  if (!awaited_.empty()) {
    const std::uint32_t done = read(desk_.up.done);
    while (!awaited_.empty() && static_cast<std::int32_t>(done - awaited_.front()) >= 0) awaited_.pop_front();
  }
  if (!sends_.empty()) push_on();
}

void GpuEnd::push_on() {
  Send& send = sends_.front();
  if (send.done != send.posted) {
    if (read(desk_.taken) != number_) return;
    send.done = send.posted;
  }
  if (send.done < send.bytes) return post_part(send);
  sends_.pop_front();
  if (!sends_.empty()) post_part(sends_.front());
}

void GpuEnd::post_part(Send& send) {
  if (send.posted == 0)
    store_packet(&desk_.announced,
                 {{static_cast<std::uint32_t>(send.bytes), static_cast<std::uint32_t>(send.bytes >> 32), 0}, ++sent_});
  const Bytes part = part_of(send.bytes - send.posted);
  const std::byte* from = send.source + send.posted;
  send.posted += part;
  ++number_;
  if (send.source == nullptr)  // not from the GPU
    return store_packet(
        &desk_.down.replies[0],
        {{static_cast<std::uint32_t>(send.value), static_cast<std::uint32_t>(send.value >> 32), 0}, number_});
  down_.ensure_running(Deadline::in(options_.patience));
  const Order order{task_of_get(part), static_cast<unsigned>(part), const_cast<std::byte*>(from)};
  post_message(desk_.down, options_.pollers, order, nullptr, number_);
}

}  // namespace waywiser
