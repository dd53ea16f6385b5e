#include "waywiser/transport/courier/gpu_end.hpp"

#include <cstddef>
#include <cstring>

#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
GpuEnd::GpuEnd(const Path& path, PeerChannel& peer, Platform& platform, const std::shared_ptr<const Memory>& memory,
               const CourierOptions& options)
    : PairEnd(path, peer),
      options_(options),
      mailboxes_(*reinterpret_cast<PairMailboxes*>(memory->region().data)),
      up_(platform, path.source, memory, offsetof(PairMailboxes, up), options),
      down_(platform, path.source, memory, offsetof(PairMailboxes, down), options),
      up_lanes_(up_.lanes()),
      down_lanes_(down_.lanes()) {}

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
  if (awaited_.size() == PairMailboxes::rooms)
    wait([this] { return awaited_.size() < PairMailboxes::rooms; }, Deadline::in(options_.patience));
  mailboxes_.room[accepted_ % PairMailboxes::rooms] = {reinterpret_cast<std::uint64_t>(up_.stream().reach(destination)),
                                                       destination.bytes};
  Bytes part = 0;
  for (Bytes left = destination.bytes; left != 0; left -= part, ++expected_) part = up_lanes_.part_of(left);
  awaited_.push_back({expected_, part});
  up_.ensure_running();
  write(mailboxes_.accepted, ++accepted_);
}

void GpuEnd::rest() {
  up_.end();
  down_.end();
}

// Either kernel may have parked before its message came.
void GpuEnd::look_after() {
  if (!awaited_.empty()) up_.attend();
  if (!sends_.empty()) down_.attend();
}

std::string GpuEnd::late_text() {
  const bool kernel = !sends_.empty() && sends_.front().source != nullptr && read(mailboxes_.down->done) != number_;
  return kernel ? down_.late_text() : PairEnd::late_text();
}

void GpuEnd::progress() {
  while (!awaited_.empty() && up_lanes_.put_arrived(awaited_.front().part, awaited_.front().number))
    awaited_.pop_front();
  if (!sends_.empty()) push_on();
}

void GpuEnd::push_on() {
  Send& send = sends_.front();
  if (send.done != send.posted) {
    if (read(mailboxes_.taken) != number_) return;
    send.done = send.posted;
  }
  if (send.done < send.bytes) return post_part(send);
  sends_.pop_front();
  if (!sends_.empty()) post_part(sends_.front());
}

void GpuEnd::post_part(Send& send) {
  if (send.posted == 0)
    store_packet(&mailboxes_.announced,
                 {{static_cast<std::uint32_t>(send.bytes), static_cast<std::uint32_t>(send.bytes >> 32), 0}, ++sent_});
  const Bytes part = down_lanes_.part_of(send.bytes - send.posted);
  const std::byte* from = send.source + send.posted;
  send.posted += part;
  ++number_;
  if (send.source == nullptr) return down_lanes_.answer(send.value, number_);
  down_.ensure_running();
  down_lanes_.post_get(from, part, number_);
}

}  // namespace waywiser
