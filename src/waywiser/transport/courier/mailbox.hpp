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

inline constexpr unsigned packets_per_slice = 32;  // a warp loads a slice with one instruction
inline constexpr unsigned most_slices = 32;
inline constexpr unsigned most_copies = 4;
inline constexpr unsigned packet_bytes = 12;
inline constexpr unsigned slice_bytes = (packets_per_slice - 1) * packet_bytes;  // packet 0 is the order
inline constexpr unsigned staged_bytes = 2048;                                   // of one slice

// One warp's share of a message.
struct Slice {
  Packet packets[packets_per_slice];
};

struct Mailbox {
  Slice orders[most_copies][most_slices];  // host to GPU
  Slice replies[most_slices];              // GPU to host
  alignas(128) std::uint32_t done[most_slices];
  alignas(128) std::uint32_t parked;  // the launch that has ended
  alignas(128) std::byte staged[most_slices][staged_bytes];
};

enum class Task : std::uint32_t {
  put_packets,  // the data follows in the packets
  get_packets,  // the data goes back in the reply's packets
  put_staged,   // the data is in `staged`
  get_staged,
  stop,
};

// The words of packet 0.
struct Order {
  Task task = Task::stop;
  unsigned bytes = 0;
  unsigned slices = 1;  // of the whole message
  std::byte* address = nullptr;

  WAYWISER_DEVICE static Order read(const Packet& packet) {
    const std::uint64_t address = packet.words[0] | (std::uint64_t{packet.words[1]} << 32);
    return {static_cast<Task>(packet.words[2] & 0xff), packet.words[2] >> 16, (packet.words[2] >> 8) & 0xff,
            reinterpret_cast<std::byte*>(address)};
  }
  WAYWISER_DEVICE Packet packet(std::uint32_t number) const {
    const auto value = reinterpret_cast<std::uint64_t>(address);
    return {{static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32),
             static_cast<std::uint32_t>(task) | (slices << 8) | (bytes << 16)},
            number};
  }
  // How many packets of the slice must have arrived before the order can be carried out.
  WAYWISER_DEVICE unsigned packets() const {
    return task == Task::put_packets ? 1 + (bytes + packet_bytes - 1) / packet_bytes : 1;
  }
};

// Short messages are posted several times, so that the reads of several warps, which are under way at different
// moments, shorten the wait for the next look.
WAYWISER_DEVICE inline unsigned copies_of(unsigned slices) {
  if (slices == 1) return most_copies;
  return slices <= 4 ? 2 : 1;
}

// What the warps of one launch know together.
struct CourierShared {
  std::uint32_t handled[most_slices];  // number of the last message, for each slice
  std::uint32_t hot;                   // slices of the last message: these are watched
  std::uint32_t parked;
  std::uint64_t last_work;  // nanoseconds
};

// One launch of the kernel.
struct CourierTerms {
  Mailbox* box = nullptr;
  std::uint32_t last_number = 0;  // of the message before the first that this launch may take
  std::uint32_t launch = 0;
  std::uint64_t idle_ns = 0;       // without work for this long: end
  std::uint64_t residence_ns = 0;  // end in any case: cudaFree and its like wait for running kernels
};

}  // namespace waywiser
