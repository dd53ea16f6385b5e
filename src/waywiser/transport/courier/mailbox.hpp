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
inline constexpr unsigned end_packet = packets_per_row - 1;
inline constexpr unsigned most_inline = (end_packet - 1) * packet_bytes;  // packet 0 is the order
inline constexpr unsigned reply_rows = 48;
inline constexpr unsigned most_reply = reply_rows * packets_per_row * packet_bytes;
inline constexpr unsigned staged_bytes = 64 << 10;
inline constexpr unsigned most_warps = 16;
inline constexpr unsigned most_pollers = 4;

// Reads of one address of host memory wait for each other, those of several do not: each polling warp has its own copy
// of the order. Its first packet is the order, the last ends the launch that it names, puts in packets are in between.
struct OrderRow {
  Packet packets[packets_per_row];
};

struct Mailbox {
  OrderRow orders[most_pollers];                 // host to GPU; the only part that the kernel polls
  Packet replies[reply_rows * packets_per_row];  // GPU to host
  alignas(128) std::uint32_t done;               // the last message that needs no other launch
  alignas(128) std::uint32_t parked;             // the launch that has ended
  alignas(128) std::byte staged[staged_bytes];
};

enum class Task : std::uint32_t {
  put_packets,  // the data follows the order
  get_packets,  // the data goes back in the reply's packets
  put_staged,   // the data is in `staged`
  get_staged,
};

// The words of packet 0.
struct Order {
  Task task = Task::put_packets;
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
    return task == Task::put_packets ? 1 + (bytes + packet_bytes - 1) / packet_bytes : 1;
  }
};

// What the warps of the kernel tell each other.
struct CourierShared {
  Order order;              // for the helpers
  std::uint32_t number;     // of the last message that they carry out
  std::uint32_t finished;   // their shares of it
  std::uint32_t claimed;    // the last message that a poller has taken
  std::uint32_t handled;    // the same, when it is carried out
  std::uint32_t last_look;  // when, in ticks
  std::uint32_t over;       // the pollers have to leave
  std::uint32_t left;       // how many have
  std::uint32_t parked;     // the helpers have to leave
};

// One launch of the kernel.
struct CourierTerms {
  Mailbox* box = nullptr;
  std::uint32_t launch = 0;
  unsigned pollers = 1;
  unsigned look_gap_ns = 0;        // between a look of one poller and of another
  std::uint64_t idle_ns = 0;       // without work for this long: end
  std::uint64_t residence_ns = 0;  // end in any case: cudaFree and its like wait for running kernels
};

}  // namespace waywiser
