#include "waywiser/comm/shared_copy.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "waywiser/base/units.hpp"

namespace waywiser {
namespace {

// A chunk takes less than a millisecond: but whoever copies it may have lost its core.
constexpr Seconds giving_up_patience = 10;
constexpr unsigned turns_between_questions = 64;

constexpr std::uint64_t here = 0;  // in place of a process's number

// Not by the functions of the C library: the sanitizers take the other process's addresses for this one's.
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

// It has ended, and copies nothing any more.
bool is_gone(std::uint64_t process, std::uint64_t address) noexcept {
  std::byte one{};
  return process != here && !copy(SYS_process_vm_readv, process, &one, address, sizeof one) && errno == ESRCH;
}

// Some chunks that follow each other.
struct Chunks {
  std::uint32_t first = 0, count = 0;
  explicit operator bool() const noexcept { return count != 0; }
};

Chunks take(SharedCopy& copy, std::uint32_t chunks, std::uint32_t most) noexcept {
  if (copy.taken.load(std::memory_order_relaxed) >= chunks) return {};
  const std::uint32_t first = copy.taken.fetch_add(most, std::memory_order_relaxed);
  return first < chunks ? Chunks{first, std::min(most, chunks - first)} : Chunks{};
}

constexpr std::uint64_t packed(Chunks chunks) { return std::uint64_t{chunks.first} << 32 | chunks.count; }
constexpr Chunks unpacked(std::uint64_t word) {
  return {static_cast<std::uint32_t>(word >> 32), static_cast<std::uint32_t>(word)};
}

struct Part {
  std::size_t offset = 0, bytes = 0;
};
Part part_of(Chunks chunks, std::size_t bytes) {
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

Turn CopyEnd::receive(std::byte* into, std::uint32_t most) const noexcept {
  const std::uint32_t chunks = chunks_of(bytes);
  Chunks mine = take(*copy, chunks, most);
  if (!mine && copy->returned.load(std::memory_order_relaxed) != 0)
    mine = unpacked(copy->returned.exchange(0, std::memory_order_relaxed));
  if (mine) {
    const Part part = part_of(mine, bytes);
    if (!read_memory(process, into + part.offset, there + part.offset, part.bytes)) {
      copy->state.store(SharedCopy::refused, std::memory_order_release);
      return Turn::refused;
    }
    copy->copied.fetch_add(mine.count, std::memory_order_acq_rel);
  }
  if (copy->copied.load(std::memory_order_acquire) != chunks) return mine ? Turn::copied : Turn::nothing_to_do;
  copy->state.store(SharedCopy::unused, std::memory_order_release);
  return Turn::complete;
}

Turn CopyEnd::send(const std::byte* from, std::uint32_t most) const noexcept {
  switch (copy->state.load(std::memory_order_acquire)) {
    case SharedCopy::offered: return Turn::nothing_to_do;
    case SharedCopy::open: break;
    case SharedCopy::unused: return Turn::complete;
    default: return Turn::refused;
  }
  const std::uint32_t chunks = chunks_of(bytes);
  const bool takes = most != 0 && copy->returned.load(std::memory_order_relaxed) == 0;  // there is room for one piece
  const Chunks mine = takes ? take(*copy, chunks, most) : Chunks{};
  if (mine) {
    const Part part = part_of(mine, bytes);
    const std::uint64_t destination = copy->destination.load(std::memory_order_relaxed);
    if (!write_memory(process, destination + part.offset, from + part.offset, part.bytes)) {
      copy->returned.store(packed(mine), std::memory_order_relaxed);
      return Turn::failed;
    }
    copy->copied.fetch_add(mine.count, std::memory_order_acq_rel);
  }
  if (copy->copied.load(std::memory_order_acquire) == chunks) return Turn::complete;
  return mine ? Turn::copied : Turn::nothing_to_do;
}

bool CopyEnd::give_up() const noexcept {
  SharedCopy::State offered = SharedCopy::offered;
  if (copy->state.compare_exchange_strong(offered, SharedCopy::withdrawn)) return true;
  const std::uint32_t taken = std::min(copy->taken.exchange(SharedCopy::all_taken), chunks_of(bytes));
  const auto under_way = [&] {
    return copy->copied.load(std::memory_order_acquire) + unpacked(copy->returned.load()).count < taken;
  };
  const Deadline deadline = Deadline::in(giving_up_patience);
  for (unsigned turn = 0; under_way() && !deadline.passed(); ++turn) {
    if (turn % turns_between_questions == 0 && is_gone(process, there)) return true;
    ::sched_yield();
  }
  return !under_way();
}

}  // namespace waywiser
