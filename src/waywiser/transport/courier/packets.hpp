#pragma once

#include "waywiser/device/region.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// A put goes in parts, a message each.
inline Bytes part_of(Bytes left) { return left < staged_bytes ? left : staged_bytes; }
inline Task task_of_put(Bytes part) { return part <= most_inline ? Task::put_packets : Task::put_staged; }
inline Task task_of_get(Bytes part) { return part <= most_reply ? Task::get_packets : Task::get_staged; }

// 16 bytes in one access. Aligned accesses of this width are not torn on processors with AVX (x86-64) or LSE2 (Arm).
Packet load_packet(const Packet* from);
void store_packet(Packet* to, const Packet& packet);

// To so many pollers, as message `number`: `order` with `source`, which only puts have.
void post_message(Mailbox& box, unsigned copies, const Order& order, const std::byte* source, std::uint32_t number);
// Copies to `to` the packets from `next` on that have arrived, moving `next`. True: all of `bytes` are there.
bool take_reply(const Packet* replies, std::byte* to, unsigned bytes, std::uint32_t number, unsigned& next);

}  // namespace waywiser
