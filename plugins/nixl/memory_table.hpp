#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "gpu_driver.hpp"

namespace waywiser_nixl {

using Clock = std::chrono::steady_clock;

// Which of an agent's memories is meant: a slot of its table, and the how many-th memory of that slot.
struct MemoryNumber {
  std::uint32_t slot = 0;
  std::uint32_t turn = 0;
  bool operator==(const MemoryNumber&) const = default;
};

struct MemorySlot {
  std::atomic<std::uint64_t> state;  // turn << 32 | `registered` | number of holders
  std::atomic<std::uint64_t> address;
  std::atomic<std::uint64_t> bytes;
  std::atomic<std::uint64_t> offset;  // of GPU memory, in its allocation
};

struct MemoryBounds {
  std::uint64_t address = 0, bytes = 0, offset = 0;
};

// The registered memories of one agent, in a file in memory that agents of other processes map too: who copies holds
// both memories, and a memory is gone only when nobody holds it. What stands there of other processes is not trusted.
class MemoryTable {
 public:
  static constexpr std::uint32_t slots = 1U << 20;
  static constexpr std::size_t file_bytes = slots * sizeof(MemorySlot);

  // Of another agent: takes the descriptor over. Throws Refusal if it is no such file.
  explicit MemoryTable(int descriptor);
  MemoryTable(const MemoryTable&) = delete;
  MemoryTable& operator=(const MemoryTable&) = delete;
  virtual ~MemoryTable();

  int descriptor() const { return descriptor_; }

  // False: that memory is not registered any more. Else it stays until let_go().
  bool hold(MemoryNumber number) const noexcept;
  void let_go(MemoryNumber number) const noexcept;

  // False: that memory is not registered any more.
  bool bounds(MemoryNumber number, MemoryBounds& found) const noexcept;

 protected:
  MemorySlot& at(std::uint32_t slot) const { return memories_[slot]; }

 private:
  int descriptor_;
  MemorySlot* memories_ = nullptr;
};

// Holds memories of a table while it lives. Throws Refusal if one is not registered any more.
class HeldMemories {
 public:
  HeldMemories(std::shared_ptr<const MemoryTable> table, std::span<const MemoryNumber> memories);
  HeldMemories(const HeldMemories&) = delete;
  HeldMemories& operator=(const HeldMemories&) = delete;
  ~HeldMemories();

 private:
  void let_go() const noexcept;

  const std::shared_ptr<const MemoryTable> table_;
  std::vector<MemoryNumber> held_;
};

// Of a host memory: its pages are locked for GPUs, once, from before its first transfer with one.
class OwnPages {
 public:
  void lock(const MemoryBounds& bounds);

 private:
  std::once_flag once_;
  std::optional<LockedPages> locked_;
};

// Of this agent.
class OwnMemoryTable : public MemoryTable {
 public:
  OwnMemoryTable();            // throws Refusal
  ~OwnMemoryTable() override;  // removes all

  MemoryNumber add(const MemoryBounds& bounds, bool on_host);  // throws Refusal
  // Waits until nobody holds it: a part of a transfer, or a process that has died meanwhile, for which there is a
  // deadline. False: the deadline has passed. Locked pages stay locked then until nobody holds the memory.
  bool remove(MemoryNumber number);

  bool is_host(MemoryNumber number);  // of one that is held
  // Of a host memory that is held, or cannot be removed now, as its owner is in a call with it. Takes a while the first
  // time. False: it is not host memory.
  bool lock_pages(MemoryNumber number);

 private:
  bool end(std::uint32_t slot, Clock::time_point deadline);
  bool is_held(std::uint32_t slot) const;
  void free_late_ones();

  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> late_;               // removed, and held even so
  std::vector<std::shared_ptr<OwnPages>> pages_;  // by slot; null: of GPU memory, or none
};

}  // namespace waywiser_nixl
