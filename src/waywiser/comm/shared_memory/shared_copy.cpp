#include "waywiser/comm/shared_memory/shared_copy.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

#include "waywiser/comm/message/fault_point.hpp"

namespace waywiser {
namespace {

constexpr std::uint64_t here = 0;  // replaces this process's number

// Raw system calls instead of libc's functions: the sanitizers would check the other process's addresses as this one's.
bool copy(long call, std::uint64_t process, std::byte* mine, std::uint64_t theirs, std::size_t bytes) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    const iovec local{mine + done, bytes - done};
    const iovec remote{reinterpret_cast<void*>(theirs + done), bytes - done};
    const long moved = ::syscall(call, static_cast<pid_t>(process), &local, 1L, &remote, 1L, 0L);
    if (moved <= 0) return false;
    done += static_cast<std::size_t>(moved);
  }
  return true;
}

// Marks the claim of a chunk and its copy.
class Copying {
 public:
  explicit Copying(std::atomic<std::uint32_t>& mark) noexcept : mark_(mark) {
    mark_.store(1, std::memory_order_relaxed);  // published by the following claim
  }
  Copying(const Copying&) = delete;
  Copying& operator=(const Copying&) = delete;
  ~Copying() { mark_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint32_t>& mark_;
};

Chunks take(SharedCopy& copy, std::uint32_t chunks, std::uint32_t most) noexcept {
  const std::uint32_t first = copy.taken.fetch_add(most, std::memory_order_acq_rel);
  return first < chunks ? Chunks{first, std::min(most, chunks - first)} : Chunks{};
}

constexpr std::uint64_t packed(Chunks chunks) { return std::uint64_t{chunks.first} << 32 | chunks.count; }
constexpr Chunks unpacked(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
}

struct CopyPart {
  std::size_t offset = 0, bytes = 0;
};
CopyPart part_of(Chunks chunks, std::size_t bytes) {
  const std::size_t offset = chunks.first * chunk_bytes(bytes);
  return {offset, std::min(chunks.count * chunk_bytes(bytes), bytes - offset)};
}

}  // namespace

std::uint64_t process_to_copy(std::uint64_t process) noexcept {
#ifdef __SANITIZE_THREAD__
  return process;
#else
  return process == static_cast<std::uint64_t>(::getpid()) ? here : process;
#endif
}

bool read_memory(std::uint64_t process, std::byte* into, std::uint64_t source, std::size_t bytes) noexcept {
  if (process != here) return copy(SYS_process_vm_readv, process, into, source, bytes);
  std::memcpy(into, reinterpret_cast<const std::byte*>(source), bytes);
  return true;
}

bool write_memory(std::uint64_t process, std::uint64_t destination, const std::byte* from, std::size_t bytes) noexcept {
  if (process != here) return copy(SYS_process_vm_writev, process, const_cast<std::byte*>(from), destination, bytes);
  std::memcpy(reinterpret_cast<std::byte*>(destination), from, bytes);
  return true;
}

bool CopyEnd::open(std::byte* into) const noexcept {
  copy->destination.store(reinterpret_cast<std::uintptr_t>(into), std::memory_order_relaxed);
  fault_point(ProtocolStep::cts);
  SharedCopy::State offered = SharedCopy::offered;
  return copy->state.compare_exchange_strong(offered, SharedCopy::open, std::memory_order_acq_rel);
}

// Claims before it opens: the sender finds nothing left.
Turn CopyEnd::receive_alone(std::byte* into) const noexcept {
  const Chunks all{0, chunks_of(bytes)};
  const Copying copying(copy->receiver_copies);
  copy->taken.store(all.count, std::memory_order_relaxed);
  if (!open(into)) return Turn::nothing_to_do;
  return read(all, into) ? finish() : refuse();
}

Turn CopyEnd::refuse() const noexcept {
  copy->state.store(SharedCopy::refused, std::memory_order_release);
  return Turn::refused;
}

Turn CopyEnd::finish() const noexcept {
  fault_point(ProtocolStep::fin);
  copy->state.store(SharedCopy::unused, std::memory_order_release);
  return Turn::complete;
}

Turn CopyEnd::receive(std::byte* into, std::uint32_t most) const noexcept {
  const std::uint32_t chunks = chunks_of(bytes);
  const bool some_are_left = copy->taken.load(std::memory_order_relaxed) < chunks;
  const bool some_came_back = copy->returned.load(std::memory_order_relaxed) != 0;
  Chunks mine;
  if (some_are_left || some_came_back) {
    const Copying copying(copy->receiver_copies);
    if (some_are_left) mine = take(*copy, chunks, most);
    if (!mine && some_came_back) mine = unpacked(copy->returned.exchange(0, std::memory_order_acq_rel));
    if (mine && !read(mine, into)) return refuse();
  }
  if (mine) copy->copied.fetch_add(mine.count, std::memory_order_acq_rel);
  if (copy->copied.load(std::memory_order_acquire) != chunks) return mine ? Turn::copied : Turn::nothing_to_do;
  return finish();
}

Turn CopyEnd::send(const std::byte* from, std::uint32_t most) const noexcept {
  switch (copy->state.load(std::memory_order_acquire)) {
    case SharedCopy::offered: return Turn::nothing_to_do;
    case SharedCopy::open: break;
    case SharedCopy::unused: return Turn::complete;
    default: return Turn::refused;
  }
  const std::uint32_t chunks = chunks_of(bytes);
  const bool has_room = copy->returned.load(std::memory_order_relaxed) == 0;  // for one piece
  Chunks mine;
  if (most != 0 && has_room && copy->taken.load(std::memory_order_relaxed) < chunks) {
    const Copying copying(copy->sender_copies);
    mine = take(*copy, chunks, most);
    if (mine && !write(mine, from)) {
      copy->returned.store(packed(mine), std::memory_order_release);
      return Turn::failed;
    }
  }
  if (mine) copy->copied.fetch_add(mine.count, std::memory_order_acq_rel);
  if (copy->copied.load(std::memory_order_acquire) == chunks) return Turn::complete;
  return mine ? Turn::copied : Turn::nothing_to_do;
}

bool CopyEnd::read(Chunks mine, std::byte* into) const noexcept {
  const CopyPart part = part_of(mine, bytes);
  fault_point(ProtocolStep::claim);
  return read_memory(process, into + part.offset, there + part.offset, part.bytes);
}

bool CopyEnd::write(Chunks mine, const std::byte* from) const noexcept {
  const CopyPart part = part_of(mine, bytes);
  fault_point(ProtocolStep::claim);
  const std::uint64_t destination = copy->destination.load(std::memory_order_relaxed);
  return write_memory(process, destination + part.offset, from + part.offset, part.bytes);
}

// A rank that claims after the exchanges gets nothing. A rank that claimed before is seen as copying by every rank that
// looks after the exchanges.
void CopyEnd::stop() const noexcept {
  SharedCopy::State offered = SharedCopy::offered;
  if (copy->state.compare_exchange_strong(offered, SharedCopy::withdrawn)) return;
  copy->taken.fetch_or(SharedCopy::all_taken, std::memory_order_acq_rel);
  copy->returned.exchange(0, std::memory_order_acq_rel);
}

bool CopyEnd::is_held(bool by_sender) const noexcept {
  const auto& copies = by_sender ? copy->sender_copies : copy->receiver_copies;
  return copies.load(std::memory_order_acquire) != 0;
}

}  // namespace waywiser
