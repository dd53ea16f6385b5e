#pragma once

#include <cstddef>
#include <cstdint>

#include "waywiser/kernels/device_code.hpp"

namespace waywiser {

// The data exchanged by host and resident kernel, in pinned host memory. Every polled word carries the number of its
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

// Reads of one host address serialise, those of several do not: each polling warp has its own copy of the order. Packet
// 0 is the order, packet 1 ends the launch that it names, the data of a put follow.
struct OrderCopy {
  Packet packets[packets_per_row];
};

// For one lane: each is served by a multiprocessor of its own, which never waits for another lane.
struct Mailbox {
  OrderCopy orders[most_pollers];                      // host to GPU; the only part that the kernel polls
  Packet following[following_rows * packets_per_row];  // host to GPU, after the order
  Packet replies[most_reply / packet_bytes];           // GPU to host
  alignas(128) std::uint32_t done;                     // the last message that needs no other launch
  alignas(128) std::uint32_t done_too;                 // the same, for another process
  alignas(128) std::uint32_t parked;                   // of the first lane: the launch that has ended, or is about to
  alignas(128) std::byte staged[staged_bytes];
};

// The host chooses the task: every instruction of the kernel delays the message.
enum class Task : std::uint32_t {
  put_flag,   // 8 bytes at once, since they may be awaited. As in the next two, the data follow the order
  put_words,  // address and size are multiples of 4
  put_bytes,
  get_words,  // the data return in the reply's packets
  get_bytes,
  put_following,  // multiples of 4 as well; the data are written while the order is in flight
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

// The state shared by the warps of a lane.
struct CourierShared {
  std::uint32_t claimed;    // the last message that a poller has taken
  std::uint32_t handled;    // the last message carried out
  std::uint32_t last_look;  // time of the last poll, in ticks
  std::uint32_t over;       // the pollers must leave
  std::uint32_t left;       // the number that have left
};

// One launch of the kernel.
struct CourierTerms {
  Mailbox* boxes = nullptr;  // of all lanes
  std::uint32_t launch = 0;
  unsigned look_gap_ns = 0;        // between polls of two pollers
  std::uint64_t idle_ns = 0;       // without work for this long: end
  std::uint64_t residence_ns = 0;  // end in any case, since cudaFree and the like wait for running kernels
};

}  // namespace waywiser
