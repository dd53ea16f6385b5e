#include "waywiser/measure/flag_page.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t cells_apart = 256;  // not on one cache line, nor on a pair that is fetched together
constexpr unsigned quick_turns = 40000;   // tens of microseconds
constexpr unsigned turns_between_looks = 64;

Descriptor make_page() {
  Descriptor file(::memfd_create("waywiser flags", MFD_CLOEXEC));
  if (!file.open() || ::ftruncate(file.number(), page_bytes) != 0)
    throw Error(ErrorKind::io, "cannot make a shared page: " + last_system_error());
  return file;
}

}  // namespace

FlagPage::FlagPage(Role role, Descriptor file, PeerChannel& channel)
    : file_(file.open() ? std::move(file) : make_page()), channel_(channel) {
  if (::lseek(file_.number(), 0, SEEK_END) < static_cast<off_t>(page_bytes))
    throw Error(ErrorKind::invalid_input, "the shared page from the peer process is too short");
  page_ = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.number(), 0);
  if (page_ == MAP_FAILED) throw Error(ErrorKind::io, "cannot map a shared page: " + last_system_error());
  auto* const cells = static_cast<std::byte*>(page_);
  mine_ = reinterpret_cast<std::atomic<std::uint64_t>*>(cells + (role == Role::initiator ? 0 : cells_apart));
  theirs_ = reinterpret_cast<std::atomic<std::uint64_t>*>(cells + (role == Role::initiator ? cells_apart : 0));
}

FlagPage::~FlagPage() { ::munmap(page_, page_bytes); }

void FlagPage::wait(Deadline deadline, const std::function<void()>& idle) {
  ++heard_;
  for (unsigned turn = 0; turn < quick_turns; ++turn) {
    if (theirs_->load(std::memory_order_acquire) >= heard_) return;
    if (idle) idle();
  }
  wait_long(deadline, idle);
}

void FlagPage::wait_long(Deadline deadline, const std::function<void()>& idle) {
  for (unsigned turn = 1; theirs_->load(std::memory_order_acquire) < heard_; ++turn) {
    if (idle) idle();
    ::sched_yield();
    if (turn % turns_between_looks != 0) continue;
    if (channel_.peer_ended() && theirs_->load(std::memory_order_acquire) < heard_)
      throw Error(ErrorKind::io, "the peer process ended");
    if (deadline.passed()) throw Error(ErrorKind::timeout, "the peer process does not answer");
  }
}

}  // namespace waywiser
