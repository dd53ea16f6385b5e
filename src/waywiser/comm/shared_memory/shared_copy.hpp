#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "waywiser/policy/defaults.hpp"

namespace waywiser {

inline constexpr std::size_t cache_line = 64;

// Both ranks copy a long message between two ranks of a machine, once: the sender offers it, the receiver opens the
// copy when it knows the destination, and then each rank claims the next chunk whenever it has a turn. The receiver
// reads the sender's memory; the sender writes the receiver's. A rank that comes late finds less to do.
struct alignas(cache_line) SharedCopy {
  enum State : std::uint32_t {
    unused,
    offered,    // by the sender
    open,       // by the receiver: chunks can be claimed
    refused,    // by the receiver, which cannot read the sender's memory
    withdrawn,  // by the sender
  };
  static constexpr std::uint32_t all_taken = 1u << 31;

  std::atomic<State> state;
  std::atomic<std::uint32_t> taken, copied;  // chunks
  std::atomic<std::uint64_t> returned;       // chunks that the sender has claimed and could not write; 0: none
  std::atomic<std::uint64_t> destination;    // in the receiver's memory
  // Nonzero while an end may be accessing the other's memory: set before a chunk is claimed.
  std::atomic<std::uint32_t> sender_copies, receiver_copies;
};
static_assert(sizeof(SharedCopy) == cache_line);
inline constexpr std::uint32_t most_shared_copies = 64;  // at a time, from one rank to another

// The offer to the receiver. Without a SharedCopy (`copy` is most_shared_copies) UCX carries the message.
struct CopyOffer {
  std::uint64_t source = 0;  // in the sender's memory
  std::uint64_t bytes = 0;
  std::uint32_t copy = most_shared_copies;
  std::uint32_t number = 0;  // of the message if UCX must carry it
};

// Equal in both processes.
constexpr std::size_t chunk_bytes(std::size_t bytes) {
  constexpr std::size_t page = 4096, least = defaults::copy_chunk_least, most = defaults::copy_chunk_most;
  return std::clamp((bytes / 2 + page - 1) / page * page, least, most);
}
constexpr std::uint32_t chunks_of(std::size_t bytes) {
  return static_cast<std::uint32_t>((bytes + chunk_bytes(bytes) - 1) / chunk_bytes(bytes));
}

// How the two functions below, and CopyEnd, name a process. Under the thread sanitizer this process is treated like any
// other: ranks that are threads map the mailboxes at two addresses, so the sanitizer cannot see what orders their
// copies.
std::uint64_t process_to_copy(std::uint64_t process) noexcept;
// Copies between this process's memory and that of another one, or its own. False: the system call fails.
bool read_memory(std::uint64_t process, std::byte* into, std::uint64_t source, std::size_t bytes) noexcept;
bool write_memory(std::uint64_t process, std::uint64_t destination, const std::byte* from, std::size_t bytes) noexcept;

// Consecutive chunks.
struct Chunks {
  std::uint32_t first = 0, count = 0;
  explicit operator bool() const noexcept { return count != 0; }
};

// One end of a shared copy.
enum class Turn { nothing_to_do, copied, complete, refused, failed };
struct CopyEnd {
  SharedCopy* copy = nullptr;
  std::uint64_t process = 0;  // the other one, from process_to_copy()
  std::uint64_t there = 0;    // the other end's memory
  std::size_t bytes = 0;

  // The receiver opens the copy. False: it has been withdrawn.
  bool open(std::byte* into) const noexcept;
  // Opens it and reads all, before the sender can claim anything. nothing_to_do: it has been withdrawn.
  Turn receive_alone(std::byte* into) const noexcept;
  // Claims at most `most` chunks. refused: the sender's memory cannot be read, and both ends know it.
  Turn receive(std::byte* into, std::uint32_t most) const noexcept;
  // failed: the receiver's memory cannot be written, and the receiver copies everything.
  Turn send(const std::byte* from, std::uint32_t most) const noexcept;
  // After it neither end claims a chunk; both ends may call it.
  void stop() const noexcept;
  // After stop(): whether the sender, or the receiver, still copies a chunk that it claimed before.
  bool is_held(bool by_sender) const noexcept;

 private:
  Turn refuse() const noexcept;
  Turn finish() const noexcept;
  bool read(Chunks mine, std::byte* into) const noexcept;
  bool write(Chunks mine, const std::byte* from) const noexcept;
};

}  // namespace waywiser
