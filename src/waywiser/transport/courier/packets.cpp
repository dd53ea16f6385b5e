#include "waywiser/transport/courier/packets.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

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

// A cache line of packets, when all of it has arrived and there is room after it for the last word.
inline bool take_four(const Packet* packets, std::byte* to, unsigned bytes, unsigned offset, std::uint32_t number) {
  if (offset + 3 * packet_bytes + sizeof(Packet) > bytes) return false;
  const FourWords a = load(packets), b = load(packets + 1), c = load(packets + 2), d = load(packets + 3);
  const FourWords all{number, number, number, number};
  if ((((a ^ all) | (b ^ all)) | ((c ^ all) | (d ^ all)))[3] != 0) return false;
  std::memcpy(to, &a, sizeof a);
  std::memcpy(to + packet_bytes, &b, sizeof b);
  std::memcpy(to + 2 * packet_bytes, &c, sizeof c);
  std::memcpy(to + 3 * packet_bytes, &d, sizeof d);
  return true;
}

}  // namespace

Packet load_packet(const Packet* from) {
  const FourWords words = load(from);
  return {{words[0], words[1], words[2]}, words[3]};
}

void store_packet(Packet* to, const Packet& packet) {
  store(to, FourWords{packet.words[0], packet.words[1], packet.words[2], packet.number});
}

void post_message(Mailbox& box, unsigned copies, const Order& order, const std::byte* source, std::uint32_t number) {
  if (order.task == Task::put_staged) {
    std::memcpy(box.staged, source, order.bytes);
    std::atomic_thread_fence(std::memory_order_release);
  }
  const unsigned count = order.packets();
  for (unsigned copy = 0; copy < copies; ++copy) {
    Packet* packets = box.orders[copy].packets;
    for (unsigned index = 1; index < count; ++index) {
      const unsigned offset = (index - 1) * packet_bytes;
      store(&packets[index], packed(source + offset, order.bytes - offset, number));
    }
    store_packet(&packets[0], order.packet(number));
  }
}

bool take_reply(const Packet* replies, std::byte* to, unsigned bytes, std::uint32_t number, unsigned& next) {
  while (take_four(replies + next, to + next * packet_bytes, bytes, next * packet_bytes, number)) next += 4;
  for (unsigned offset = next * packet_bytes; offset < bytes; offset = ++next * packet_bytes) {
    const FourWords words = load(&replies[next]);
    if (words[3] != number) return false;
    unpack(words, to + offset, bytes - offset);
  }
  return true;
}

}  // namespace waywiser
