#pragma once

#include "waywiser/device/region.hpp"
#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// 16 bytes in one access. Aligned accesses of this width are not torn on processors with AVX (x86-64) or LSE2 (Arm).
Packet load_packet(const Packet* from);
void store_packet(Packet* to, const Packet& packet);

// `source` as packets of message `number`.
void post_data(Packet* packets, const std::byte* source, unsigned bytes, std::uint32_t number);
// Copies to `to` the packets from `next` on that have arrived, moving `next`. True: all of `bytes` are there.
bool take_reply(const Packet* replies, std::byte* to, unsigned bytes, std::uint32_t number, unsigned& next);

}  // namespace waywiser
