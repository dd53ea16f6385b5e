#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser {

// What host and resident kernel exchange, in pinned host memory. Everything that is polled carries the number of its
// message in the same 16 bytes, which both sides store and load at once: no fence orders data and flag.
struct alignas(16) Packet {
  std::uint32_t words[3];
  std::uint32_t number;
};

inline constexpr unsigned packet_bytes = 12;
inline constexpr unsigned packets_per_row = 32;  // a warp loads a row at once
inline constexpr unsigned row_bytes = packets_per_row * packet_bytes;
inline constexpr unsigned end_packet = 1, first_data = 2;
inline constexpr unsigned most_inline = (packets_per_row - first_data) * packet_bytes;
inline constexpr unsigned most_reply = 12 * row_bytes;
inline constexpr unsigned following_rows = 3, most_following = following_rows * row_bytes;
inline constexpr unsigned staged_bytes = 16 << 10;
inline constexpr unsigned most_lanes = 4, most_pollers = 4;

// Reads of one address of host memory wait for each other, those of several do not: each polling warp has its own copy
// of the order. Packet 0 is the order, packet 1 ends the launch that it names, the data of a put follows.
struct OrderCopy {
  Packet packets[packets_per_row];
};

// Of one lane: each is served by a processor of its own, on which nothing waits for another lane.
struct Mailbox {
  OrderCopy orders[most_pollers];                      // host to GPU; the only part that the kernel polls
  Packet following[following_rows * packets_per_row];  // host to GPU, after the order
  Packet replies[most_reply / packet_bytes];           // GPU to host
  alignas(128) std::uint32_t done;                     // the last message that needs no other launch
  alignas(128) std::uint32_t done_too;                 // the same, for another process
  alignas(128) std::uint32_t parked;                   // of the first lane: the launch that has ended, or is about to
  alignas(128) std::byte staged[staged_bytes];
};

// Which one is right the host finds out: every instruction of the kernel delays the message.
enum class Task : std::uint32_t {
  put_flag,   // 8 bytes at once: somebody may wait for them. As the next two, the data follows the order
  put_words,  // address and size are multiples of 4
  put_bytes,
  get_words,  // the data goes back in the reply's packets
  get_bytes,
  put_following,  // multiples of 4 as well; the data is being written while the order is on its way
  put_staged,
  get_staged,
};

// The words of packet 0.
struct Order {
  Task task = Task::put_bytes;
  unsigned bytes = 0;
  std::byte* address = nullptr;

  WAYWISER_DEVICE static Order read(const Packet& packet) {
    const std::uint64_t address = packet.words[0] | (std::uint64_t{packet.words[1]} << 32);
    return {static_cast<Task>(packet.words[2] & 0xff), packet.words[2] >> 8, reinterpret_cast<std::byte*>(address)};
  }
  WAYWISER_DEVICE Packet packet(std::uint32_t number) const {
    const auto value = reinterpret_cast<std::uint64_t>(address);
    return {{static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32),
             static_cast<std::uint32_t>(task) | (bytes << 8)},
            number};
  }
  // How many packets must have arrived before the order can be carried out.
  WAYWISER_DEVICE unsigned packets() const {
    return task <= Task::put_bytes ? first_data + (bytes + packet_bytes - 1) / packet_bytes : 1;
  }
};

// What the warps of a lane tell each other.
struct CourierShared {
  std::uint32_t claimed;    // the last message that a poller has taken
  std::uint32_t handled;    // the same, when it is carried out
  std::uint32_t last_look;  // when, in ticks
  std::uint32_t over;       // the pollers have to leave
  std::uint32_t left;       // how many have
};

// One launch of the kernel.
struct CourierTerms {
  Mailbox* boxes = nullptr;  // of all lanes
  std::uint32_t launch = 0;
  unsigned look_gap_ns = 0;        // between a look of one poller and of another
  std::uint64_t idle_ns = 0;       // without work for this long: end
  std::uint64_t residence_ns = 0;  // end in any case: cudaFree and its like wait for running kernels
};

}  // namespace waywiser
