#include "waywiser/transport/courier/mailbox_set.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "waywiser/transport/courier/packet_lines.hpp"
#include "waywiser/transport/courier/packets.hpp"

namespace waywiser {
namespace {

// Smaller shares are not worth another lane.
constexpr unsigned inline_share = 256, following_share = 1024, get_share = most_reply;
constexpr unsigned share_unit = 16;

bool divides(unsigned unit, const std::byte* address, unsigned bytes) {
  return reinterpret_cast<std::uintptr_t>(address) % unit == 0 && bytes % unit == 0;
}

Order put_order(std::byte* gpu, unsigned bytes) {
  Task task = Task::put_staged;
  if (bytes == 8 && divides(8, gpu, bytes))
    task = Task::put_flag;
  else if (bytes <= most_inline)
    task = divides(4, gpu, bytes) ? Task::put_words : Task::put_bytes;
  else if (bytes <= most_following && divides(4, gpu, bytes))
    task = Task::put_following;
  return {task, bytes, gpu};
}

Order get_order(const std::byte* gpu, unsigned bytes) {
  Task task = Task::get_staged;
  if (bytes <= most_reply) task = divides(4, gpu, bytes) ? Task::get_words : Task::get_bytes;
  return {task, bytes, const_cast<std::byte*>(gpu)};
}

}  // namespace

Bytes MailboxSet::part_of(Bytes left) const { return std::min(left, Bytes{shape_.lanes} * staged_bytes); }

MailboxSet::Split MailboxSet::split(Bytes part, unsigned worth_a_lane) const {
  const Bytes most = std::clamp<Bytes>(part / worth_a_lane, 1, shape_.lanes);
  const Bytes share = ((part + most - 1) / most + share_unit - 1) / share_unit * share_unit;
  const Bytes lanes = (part + share - 1) / share;
  return {static_cast<unsigned>(lanes), share, part - (lanes - 1) * share};
}

MailboxSet::Split MailboxSet::split_put(Bytes part) const {
  if (part <= most_inline) return {1, 0, part};
  return split(part, part <= Bytes{shape_.lanes} * most_inline ? inline_share : following_share);
}

MailboxSet::Split MailboxSet::split_get(Bytes part) const { return split(part, get_share); }

// All lanes have one copy of their orders before the next copies are made.
void MailboxSet::post_put(std::byte* gpu, const std::byte* source, Bytes part, std::uint32_t number) {
  const Split split = split_put(part);
  const auto order = [&](unsigned lane) { return put_order(gpu + split.offset(lane), split.bytes(lane)); };
  for (unsigned lane = 0; lane < split.lanes; ++lane)
    if (order(lane).task == Task::put_staged)
      std::memcpy(boxes_[lane].staged, source + split.offset(lane), split.bytes(lane));
  std::atomic_thread_fence(std::memory_order_release);
  for (unsigned copy = 0; copy < shape_.pollers; ++copy)
    for (unsigned lane = 0; lane < split.lanes; ++lane) {
      Packet* packets = boxes_[lane].orders[copy].packets;
      if (order(lane).task <= Task::put_bytes)
        post_data(packets + first_data, source + split.offset(lane), split.bytes(lane), number);
      store_packet(packets, order(lane).packet(number));
    }
  for (unsigned lane = 0; lane < split.lanes; ++lane)
    if (order(lane).task == Task::put_following) {
      Packet* packets = boxes_[lane].following;
      post_data(packets, source + split.offset(lane), split.bytes(lane), number);
      demote_lines(packets, split.bytes(lane) / packet_bytes);
    }
}

bool MailboxSet::put_done(Bytes part, std::uint32_t number) const { return all_have(&Mailbox::done, part, number); }

bool MailboxSet::put_arrived(Bytes part, std::uint32_t number) const {
  return all_have(&Mailbox::done_too, part, number);
}

bool MailboxSet::all_have(std::uint32_t Mailbox::* word, Bytes part, std::uint32_t number) const {
  const unsigned lanes = split_put(part).lanes;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    const std::uint32_t done = std::atomic_ref(boxes_[lane].*word).load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(done - number) < 0) return false;
  }
  return true;
}

void MailboxSet::post_get(const std::byte* gpu, Bytes part, std::uint32_t number) {
  const Split split = split_get(part);
  for (unsigned copy = 0; copy < shape_.pollers; ++copy)
    for (unsigned lane = 0; lane < split.lanes; ++lane)
      store_packet(boxes_[lane].orders[copy].packets,
                   get_order(gpu + split.offset(lane), split.bytes(lane)).packet(number));
  taken_lanes_ = taken_packets_ = 0;
}

bool MailboxSet::take(std::byte* to, Bytes part, std::uint32_t number) {
  const Split split = split_get(part);
  for (; taken_lanes_ < split.lanes; ++taken_lanes_, taken_packets_ = 0)
    if (!take_share(boxes_[taken_lanes_], to + split.offset(taken_lanes_), split.bytes(taken_lanes_), number))
      return false;
  taken_lanes_ = 0;
  return true;
}

bool MailboxSet::take_share(Mailbox& box, std::byte* to, unsigned bytes, std::uint32_t number) {
  if (bytes <= most_reply) return take_reply(box.replies, to, bytes, number, taken_packets_);
  if (std::atomic_ref(box.done).load(std::memory_order_acquire) != number) return false;
  std::memcpy(to, box.staged, bytes);
  return true;
}

void MailboxSet::answer(std::uint64_t value, std::uint32_t number) {
  store_packet(boxes_->replies,
               {{static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32), 0}, number});
}

}  // namespace waywiser
