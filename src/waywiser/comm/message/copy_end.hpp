#pragma once

#include <cstddef>
#include <cstdint>

namespace waywiser {

struct SharedCopy;

// Consecutive chunks.
struct Chunks {
  std::uint32_t first = 0, count = 0;
  explicit operator bool() const noexcept { return count != 0; }
};

// One end of a shared copy (shared_memory/shared_copy.hpp).
enum class Turn { nothing_to_do, copied, complete, refused, failed };
struct CopyEnd {
  SharedCopy* copy = nullptr;
  std::uint64_t process = 0;  // the other one, from process_to_copy()
  std::uint64_t there = 0;    // the other end's memory
  std::size_t bytes = 0;

  // Claims at most `most` chunks. refused: the sender's memory cannot be read, and both ends know it.
  Turn receive(std::byte* into, std::uint32_t most) const noexcept;
  // failed: the receiver's memory cannot be written, and the receiver copies everything.
  Turn send(const std::byte* from, std::uint32_t most) const noexcept;
  // After it neither end claims a chunk; both ends may call it.
  void stop() const noexcept;
  // After stop(): whether the sender, or the receiver, still copies a chunk that it claimed before.
  bool is_held(bool by_sender) const noexcept;

 private:
  bool read(Chunks mine, std::byte* into) const noexcept;
  bool write(Chunks mine, const std::byte* from) const noexcept;
};

}  // namespace waywiser
