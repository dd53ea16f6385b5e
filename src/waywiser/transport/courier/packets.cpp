#include "waywiser/transport/courier/packets.hpp"

#include <algorithm>
#include <cstring>

#include "waywiser/transport/courier/packet_lines.hpp"

namespace waywiser {
namespace {

using FourWords = std::uint32_t __attribute__((vector_size(16), may_alias));

// The race detector knows no 16-byte accesses; the number inside the packet is the synchronisation.
__attribute__((no_sanitize("thread"))) inline FourWords load(const Packet* from) {
  return *reinterpret_cast<const volatile FourWords*>(from);
}

__attribute__((no_sanitize("thread"))) inline void store(Packet* to, FourWords words) {
  *reinterpret_cast<volatile FourWords*>(to) = words;
}

// Reads a whole packet's width where there are so many bytes.
inline FourWords packed(const std::byte* from, unsigned left, std::uint32_t number) {
  FourWords words = {};
  if (left >= sizeof words)
    std::memcpy(&words, from, sizeof words);
  else
    std::memcpy(&words, from, std::min(left, packet_bytes));
  constexpr std::uint32_t all = ~0u;
  return (words & FourWords{all, all, all, 0}) | FourWords{0, 0, 0, number};
}

inline void unpack(FourWords words, std::byte* to, unsigned left) {
  if (left >= sizeof words)
    std::memcpy(to, &words, sizeof words);  // the next packet comes over the last word
  else
    std::memcpy(to, &words, std::min(left, packet_bytes));
}

bool starts_line(const Packet* packet) {
  constexpr std::uintptr_t line = 64;
  return reinterpret_cast<std::uintptr_t>(packet) % line == 0;
}

}  // namespace

Packet load_packet(const Packet* from) {
  const FourWords words = load(from);
  return {{words[0], words[1], words[2]}, words[3]};
}

void store_packet(Packet* to, const Packet& packet) {
  store(to, FourWords{packet.words[0], packet.words[1], packet.words[2], packet.number});
}

void post_data(Packet* packets, const std::byte* source, unsigned bytes, std::uint32_t number) {
  for (unsigned offset = 0; offset < bytes;) {
    if (starts_line(packets)) {
      const unsigned written = write_packet_lines(packets, source + offset, bytes - offset, number);
      packets += written;
      offset += written * packet_bytes;
      if (offset >= bytes) return;
    }
    store(packets++, packed(source + offset, bytes - offset, number));
    offset += packet_bytes;
  }
}

bool take_reply(const Packet* replies, std::byte* to, unsigned bytes, std::uint32_t number, unsigned& next) {
  const Bytes first = Bytes{next} * packet_bytes;
  if (starts_line(replies + next))
    next += read_packet_lines(replies + next, to + first, bytes - static_cast<unsigned>(first), number);
  for (unsigned offset = next * packet_bytes; offset < bytes; offset = ++next * packet_bytes) {
    const FourWords words = load(&replies[next]);
    if (words[3] != number) return false;
    unpack(words, to + offset, bytes - offset);
  }
  return true;
}

}  // namespace waywiser
