#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

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

// Of this agent.
class OwnMemoryTable : public MemoryTable {
 public:
  OwnMemoryTable();            // throws Refusal
  ~OwnMemoryTable() override;  // removes all

  MemoryNumber add(const MemoryBounds& bounds);  // throws Refusal
  // Waits until nobody holds it: a part of a transfer, or a process that has died meanwhile, for which there is a
  // deadline. False: the deadline has passed.
  bool remove(MemoryNumber number);

 private:
  bool end(std::uint32_t slot, Clock::time_point deadline);

  std::mutex mutex_;
  std::vector<std::uint32_t> free_;
  std::uint32_t unused_ = 0;  // this slot and those behind it
};

}  // namespace waywiser_nixl
