#include "waywiser/transport/courier/packets.hpp"

#include <algorithm>
#include <cstring>

namespace waywiser {
namespace {

using FourWords = std::uint32_t __attribute__((vector_size(16), may_alias));

}  // namespace

// The race detector knows no 16-byte accesses; the number inside the packet is the synchronisation.
__attribute__((no_sanitize("thread"))) Packet load_packet(const Packet* from) {
  const FourWords words = *reinterpret_cast<const volatile FourWords*>(from);
  return {{words[0], words[1], words[2]}, words[3]};
}

__attribute__((no_sanitize("thread"))) void store_packet(Packet* to, const Packet& packet) {
  const FourWords words = {packet.words[0], packet.words[1], packet.words[2], packet.number};
  *reinterpret_cast<volatile FourWords*>(to) = words;
}

void post_slice(Slice& slice, const Order& order, const std::byte* source, std::uint32_t number) {
  const unsigned packets = order.packets();
  for (unsigned index = 1; index < packets; ++index) {
    const unsigned offset = (index - 1) * packet_bytes;
    Packet packet{{0, 0, 0}, number};
    if (offset + packet_bytes <= order.bytes)
      std::memcpy(packet.words, source + offset, packet_bytes);
    else
      std::memcpy(packet.words, source + offset, order.bytes - offset);
    store_packet(&slice.packets[index], packet);
  }
  store_packet(&slice.packets[0], order.packet(number));
}

bool take_reply(const Slice& slice, std::byte* to, unsigned bytes, std::uint32_t number, unsigned& next) {
  for (unsigned offset = next * packet_bytes; offset < bytes; offset = ++next * packet_bytes) {
    const Packet packet = load_packet(&slice.packets[next]);
    if (packet.number != number) return false;
    if (offset + packet_bytes <= bytes)
      std::memcpy(to + offset, packet.words, packet_bytes);
    else
      std::memcpy(to + offset, packet.words, bytes - offset);
  }
  return true;
}

}  // namespace waywiser
