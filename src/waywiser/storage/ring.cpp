#include "waywiser/storage/ring.hpp"

#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Kernels from 5.19 on need not interrupt the thread for each completion.
Descriptor set_up(unsigned entries, io_uring_params& about) {
#ifdef IORING_SETUP_COOP_TASKRUN
  for (const unsigned flags : {IORING_SETUP_COOP_TASKRUN, 0u}) {
#else
  for (const unsigned flags : {0u}) {
#endif
    about = {};
    about.flags = flags;
    Descriptor ring(static_cast<int>(::syscall(__NR_io_uring_setup, entries, &about)));
    if (ring.open() || errno != EINVAL || flags == 0) return ring;
  }
  return {};
}

std::string why_no_ring() {
  const int code = errno;
  const std::string why = last_system_error();
  if (code == ENOSYS) return "the kernel has no io_uring";
  if (code == EPERM)
    return "the system does not allow io_uring here (sysctl kernel.io_uring_disabled, or a container's rules)";
  if (code == ENOMEM) return "io_uring: " + why + " (ulimit -l)";
  return "io_uring: " + why;
}

}  // namespace

std::optional<std::string> Ring::why_not() {
  io_uring_params about{};
  const Descriptor ring = set_up(1, about);
  if (ring.open()) return {};
  return why_no_ring();
}

Ring::Ring(unsigned entries) {
  io_uring_params about{};
  ring_ = set_up(entries, about);
  if (!ring_.open()) throw Error(ErrorKind::unavailable, why_no_ring());
  submissions_ = map(about.sq_off.array + about.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  completions_ = map(about.cq_off.cqes + about.cq_entries * sizeof(io_uring_cqe), IORING_OFF_CQ_RING);
  entries_ = map(about.sq_entries * sizeof(io_uring_sqe), IORING_OFF_SQES);
  tail_ = in<unsigned>(submissions_, about.sq_off.tail);
  array_ = in<unsigned>(submissions_, about.sq_off.array);
  mask_ = *in<unsigned>(submissions_, about.sq_off.ring_mask);
  done_head_ = in<unsigned>(completions_, about.cq_off.head);
  done_tail_ = in<unsigned>(completions_, about.cq_off.tail);
  done_mask_ = *in<unsigned>(completions_, about.cq_off.ring_mask);
  done_offset_ = about.cq_off.cqes;
}

Ring::~Ring() {
  for (const Area& each : {submissions_, completions_, entries_})
    if (each.at != nullptr) ::munmap(each.at, each.length);
}

Ring::Area Ring::map(std::size_t length, std::uint64_t what) const {
  void* at = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_.number(),
                    static_cast<off_t>(what));
  if (at == MAP_FAILED) throw Error(ErrorKind::unavailable, "io_uring: cannot map it: " + last_system_error());
  return {at, length};
}

void Ring::register_memory(std::span<const Mapping> memory) {
  std::vector<iovec> all;
  for (const Mapping& each : memory) all.push_back({each.data(), each.length()});
  if (::syscall(__NR_io_uring_register, ring_.number(), IORING_REGISTER_BUFFERS, all.data(), all.size()) != 0)
    throw Error(ErrorKind::unavailable, "io_uring: cannot register memory: " + last_system_error() + " (ulimit -l)");
}

void Ring::add(const Transfer& transfer) {
  const unsigned tail = *tail_, slot = tail & mask_;
  auto* entry = in<io_uring_sqe>(entries_, static_cast<unsigned>(slot * sizeof(io_uring_sqe)));
  std::memset(entry, 0, sizeof *entry);
  const bool reads = transfer.use == FileUse::read;
  const iovec& first = transfer.memory.front();
  if (transfer.memory.size() > 1) {
    entry->opcode = reads ? IORING_OP_READV : IORING_OP_WRITEV;
    entry->addr = std::bit_cast<std::uintptr_t>(transfer.memory.data());
    entry->len = static_cast<unsigned>(transfer.memory.size());
  } else {
    entry->opcode = reads ? IORING_OP_READ : IORING_OP_WRITE;
    entry->addr = std::bit_cast<std::uintptr_t>(first.iov_base);
    entry->len = static_cast<unsigned>(first.iov_len);
  }
  if (transfer.registered >= 0) {
    entry->opcode = reads ? IORING_OP_READ_FIXED : IORING_OP_WRITE_FIXED;
    entry->buf_index = static_cast<std::uint16_t>(transfer.registered);
  }
  entry->fd = transfer.descriptor;
  entry->off = transfer.offset;
  entry->user_data = transfer.id;
  array_[slot] = slot;
  std::atomic_ref(*tail_).store(tail + 1, std::memory_order_release);
  ++added_;
}

void Ring::submit(unsigned wait_for) {
  do {
    const long taken = ::syscall(__NR_io_uring_enter, ring_.number(), added_, wait_for,
                                 wait_for != 0 ? IORING_ENTER_GETEVENTS : 0, nullptr, 0);
    if (taken >= 0)
      added_ -= static_cast<unsigned>(taken);
    else if (errno != EINTR && errno != EAGAIN && errno != EBUSY)
      throw Error(ErrorKind::io, "io_uring: " + last_system_error());
    else if (std::atomic_ref(*done_tail_).load(std::memory_order_acquire) != *done_head_)
      return;  // the rest goes with the next call
  } while (added_ != 0);
}

unsigned Ring::withdraw() {
  std::atomic_ref(*tail_).store(*tail_ - added_, std::memory_order_release);
  return std::exchange(added_, 0);
}

std::optional<Ring::Completion> Ring::next() {
  const unsigned head = *done_head_;
  if (head == std::atomic_ref(*done_tail_).load(std::memory_order_acquire)) return {};
  const auto* found = in<io_uring_cqe>(completions_, done_offset_) + (head & done_mask_);
  const Completion completion{found->user_data, found->res};
  std::atomic_ref(*done_head_).store(head + 1, std::memory_order_release);
  return completion;
}

}  // namespace waywiser
