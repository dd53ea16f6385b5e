#pragma once

#include <cstdint>

#include "waywiser/transport/courier/mailbox.hpp"

namespace waywiser {

// The memory shared by the two processes of a pair: the owner of the GPU (the GPU's end) runs both kernels; the other
// process (the host's end) only reads and writes this memory. Each word has one writer.
struct PairMailboxes {
  // The destination of one message to the GPU.
  struct alignas(64) Room {
    std::uint64_t address, bytes;
  };
  static constexpr unsigned rooms = 128;

  Mailbox up[most_lanes];               // to the GPU: the host's end posts
  Mailbox down[most_lanes];             // from the GPU: the GPU's end posts, the host's end takes the replies
  alignas(128) Room room[rooms];        // of message m at m % rooms
  alignas(128) std::uint32_t accepted;  // messages to the GPU that have got a room
  alignas(128) Packet announced;        // a message from the GPU: its bytes (words 0 and 1) and its number
  alignas(128) std::uint32_t taken;     // the last message of `down` that the host's end has copied out
};

}  // namespace waywiser
