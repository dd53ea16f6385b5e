#include "waywiser/transport/courier/host_end.hpp"

#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {

HostEnd::HostEnd(const Path& path, PeerChannel& peer, Memory memory, CourierShape shape)
    : PairEnd(path, peer),
      memory_(std::move(memory)),
      mailboxes_(*reinterpret_cast<PairMailboxes*>(memory_.region().data)),
      up_(mailboxes_.up, shape),
      down_(mailboxes_.down, shape) {}

void HostEnd::put(Region destination, ConstRegion source, Stream& stream) {
  check(destination, source, stream);
  if (source.bytes != 0) sends_.push_back({source.data, source.bytes});
  progress();
}

void HostEnd::signal(Region, std::uint64_t value, Stream& stream) {
  check(stream);
  Send& send = sends_.emplace_back(Send{nullptr, sizeof value, 0, 0, value});
  send.source = reinterpret_cast<const std::byte*>(&send.value);  // a deque leaves its elements where they are
  progress();
}

void HostEnd::accept(Region destination, Stream& stream) {
  check(stream);
  if (destination.bytes != 0) receives_.push_back({destination.data, destination.bytes});
  progress();
}

void HostEnd::progress() {
  if (!receives_.empty()) take();
  if (!sends_.empty()) push_on();
}

std::string HostEnd::late_text() {
  const bool kernel = !sends_.empty() && sends_.front().posted != sends_.front().done;
  return kernel ? "the resident kernel of the peer process did not answer in time" : PairEnd::late_text();
}

void HostEnd::push_on() {
  Send& send = sends_.front();
  if (send.done != send.posted) {
    if (!up_.put_done(send.posted - send.done, number_)) return;
    send.done = send.posted;
  }
  if (send.done < send.bytes) return post_part(send);
  sends_.pop_front();
  ++sent_;
  if (!sends_.empty()) post_part(sends_.front());
}

void HostEnd::post_part(Send& send) {
  if (accepted_ == sent_) accepted_ = read(mailboxes_.accepted);
  if (accepted_ == sent_) return;  // no room yet
  const PairMailboxes::Room room = mailboxes_.room[sent_ % PairMailboxes::rooms];
  if (room.bytes != send.bytes) fail_sizes(room.bytes, send.bytes);
  const Bytes part = up_.part_of(send.bytes - send.posted);
  up_.post_put(reinterpret_cast<std::byte*>(room.address) + send.posted, send.source + send.posted, part, ++number_);
  send.posted += part;
  __builtin_prefetch(&mailboxes_.room[(sent_ + 1) % PairMailboxes::rooms]);
}

void HostEnd::take() {
  Receive& receive = receives_.front();
  const Packet announced = load_packet(&mailboxes_.announced);
  if (announced.number != received_ + 1) return;
  const Bytes bytes = announced.words[0] | (Bytes{announced.words[1]} << 32);
  if (bytes != receive.bytes) fail_sizes(receive.bytes, bytes);
  const Bytes part = down_.part_of(receive.bytes - receive.taken);
  if (!down_.take(receive.destination + receive.taken, part, taken_ + 1)) return;
  receive.taken += part;
  write(mailboxes_.taken, ++taken_);
  if (receive.taken < receive.bytes) return;
  receives_.pop_front();
  ++received_;
}

}  // namespace waywiser
