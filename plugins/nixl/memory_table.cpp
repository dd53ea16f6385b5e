#include "memory_table.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "words.hpp"

namespace waywiser_nixl {
namespace {

constexpr std::uint64_t registered = std::uint64_t{1} << 31;
constexpr std::uint64_t holders = registered - 1;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::chrono::seconds patience{5};

constexpr std::uint64_t turn_of(std::uint64_t state) { return state >> 32; }

int new_file() {
  const int made = ::memfd_create("waywiser-nixl", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (made >= 0 && ::ftruncate(made, static_cast<off_t>(MemoryTable::file_bytes)) == 0 &&
      ::fcntl(made, F_ADD_SEALS, seals) == 0)
    return made;
  if (made >= 0) ::close(made);
  throw Refusal(Status::backend_error, "no file in memory for the table of registered memories");
}

}  // namespace

// Without the seals another process could cut the file, and a look at it would be a crash.
MemoryTable::MemoryTable(int descriptor) : descriptor_(descriptor) {
  struct stat about{};
  const int found = ::fcntl(descriptor, F_GET_SEALS);
  void* mapped = MAP_FAILED;
  if (found >= 0 && (found & F_SEAL_SHRINK) != 0 && ::fstat(descriptor, &about) == 0 &&
      about.st_size == static_cast<off_t>(file_bytes))
    mapped = ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    ::close(descriptor);
    throw Refusal(Status::mismatch, "what an agent sent is no table of registered memories");
  }
  memories_ = static_cast<MemorySlot*>(mapped);
}

MemoryTable::~MemoryTable() {
  ::munmap(memories_, file_bytes);
  ::close(descriptor_);
}

bool MemoryTable::hold(MemoryNumber number) const noexcept {
  if (number.slot >= slots) return false;
  const std::uint64_t before = at(number.slot).state.fetch_add(1, std::memory_order_acq_rel);
  if ((before & registered) != 0 && turn_of(before) == number.turn) return true;
  let_go(number);
  return false;
}

void MemoryTable::let_go(MemoryNumber number) const noexcept {
  at(number.slot).state.fetch_sub(1, std::memory_order_acq_rel);
}

bool MemoryTable::bounds(MemoryNumber number, MemoryBounds& found) const noexcept {
  if (!hold(number)) return false;
  found = {at(number.slot).address, at(number.slot).bytes, at(number.slot).offset};
  let_go(number);
  return true;
}

OwnMemoryTable::OwnMemoryTable() : MemoryTable(new_file()) {}

OwnMemoryTable::~OwnMemoryTable() {
  const auto deadline = Clock::now() + patience;
  for (std::uint32_t slot = 0; slot < unused_; ++slot) end(slot, deadline);
}

MemoryNumber OwnMemoryTable::add(const MemoryBounds& bounds) {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && unused_ == slots)
    throw Refusal(Status::not_allowed, "an agent has at most " + std::to_string(slots) + " registered memories");
  const std::uint32_t slot = free_.empty() ? unused_++ : free_.back();
  if (!free_.empty()) free_.pop_back();
  MemorySlot& memory = at(slot);
  const auto turn = static_cast<std::uint32_t>(turn_of(memory.state.load()) + 1);
  memory.address = bounds.address;
  memory.bytes = bounds.bytes;
  memory.offset = bounds.offset;
  // A late agent may be asking for the memory that was here before, and counts itself out again.
  memory.state.fetch_add((std::uint64_t{1} << 32) | registered, std::memory_order_acq_rel);
  return {slot, turn};
}

bool OwnMemoryTable::remove(MemoryNumber number) {
  if (!end(number.slot, Clock::now() + patience)) return false;  // this slot is not used again
  const std::lock_guard lock(mutex_);
  free_.push_back(number.slot);
  return true;
}

bool OwnMemoryTable::end(std::uint32_t slot, Clock::time_point deadline) {
  std::atomic<std::uint64_t>& state = at(slot).state;
  state.fetch_and(~registered, std::memory_order_acq_rel);
  while ((state.load(std::memory_order_acquire) & holders) != 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace waywiser_nixl
