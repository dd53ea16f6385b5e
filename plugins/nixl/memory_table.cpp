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

HeldMemories::HeldMemories(std::shared_ptr<const MemoryTable> table, std::span<const MemoryNumber> memories)
    : table_(std::move(table)) {
  held_.reserve(memories.size());
  for (const MemoryNumber& each : memories) {
    if (table_->hold(each)) {
      held_.push_back(each);
      continue;
    }
    let_go();
    throw Refusal(Status::not_found, "a memory of a transfer has been deregistered");
  }
}

HeldMemories::~HeldMemories() { let_go(); }

void HeldMemories::let_go() const noexcept {
  for (const MemoryNumber& each : held_) table_->let_go(each);
}

void OwnPages::lock(const MemoryBounds& bounds) {
  std::call_once(once_, [&] {
    if (const GpuDriver* gpu = GpuDriver::find())
      locked_.emplace(*gpu, reinterpret_cast<void*>(bounds.address), bounds.bytes);
  });
}

OwnMemoryTable::OwnMemoryTable() : MemoryTable(new_file()) {}

// Pages that a GPU may be copying stay locked: nobody tells when it has ended.
OwnMemoryTable::~OwnMemoryTable() {
  static auto* const never_let_go = new std::vector<std::shared_ptr<OwnPages>>;
  static std::mutex mutex;
  const auto deadline = Clock::now() + patience;
  for (std::uint32_t slot = 0; slot < pages_.size(); ++slot) {
    if (end(slot, deadline)) continue;
    const std::lock_guard lock(mutex);
    never_let_go->push_back(std::move(pages_[slot]));
  }
}

MemoryNumber OwnMemoryTable::add(const MemoryBounds& bounds, bool on_host) {
  const std::lock_guard lock(mutex_);
  free_late_ones();
  if (free_.empty() && pages_.size() == slots)
    throw Refusal(Status::not_allowed, "an agent has at most " + std::to_string(slots) + " registered memories");
  if (free_.empty()) {
    pages_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(pages_.size() - 1));
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  pages_[slot] = on_host ? std::make_shared<OwnPages>() : nullptr;
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
  const bool ended = end(number.slot, Clock::now() + patience);
  std::shared_ptr<OwnPages> pages;  // unlocked without the lock, as it takes a while
  const std::lock_guard lock(mutex_);
  free_late_ones();
  (ended ? free_ : late_).push_back(number.slot);
  if (ended) pages = std::move(pages_[number.slot]);
  return ended;
}

void OwnMemoryTable::free_late_ones() {
  std::erase_if(late_, [this](std::uint32_t slot) {
    if (is_held(slot)) return false;
    pages_[slot] = nullptr;
    free_.push_back(slot);
    return true;
  });
}

bool OwnMemoryTable::is_host(MemoryNumber number) {
  const std::lock_guard lock(mutex_);
  return number.slot < pages_.size() && pages_[number.slot] != nullptr;
}

bool OwnMemoryTable::lock_pages(MemoryNumber number) {
  std::shared_ptr<OwnPages> pages;
  {
    const std::lock_guard lock(mutex_);
    if (number.slot < pages_.size()) pages = pages_[number.slot];
  }
  if (!pages) return false;
  pages->lock({at(number.slot).address, at(number.slot).bytes, 0});
  return true;
}

bool OwnMemoryTable::is_held(std::uint32_t slot) const {
  return (at(slot).state.load(std::memory_order_acquire) & holders) != 0;
}

bool OwnMemoryTable::end(std::uint32_t slot, Clock::time_point deadline) {
  at(slot).state.fetch_and(~registered, std::memory_order_acq_rel);
  while (is_held(slot)) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return true;
}

}  // namespace waywiser_nixl
