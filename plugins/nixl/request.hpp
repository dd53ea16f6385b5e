#pragma once

#include <sys/uio.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "memory_table.hpp"
#include "nixl_types.hpp"
#include "peer.hpp"

namespace waywiser_nixl {

// A memory of this agent.
class OwnMemory : public Metadata {
 public:
  OwnMemory(MemoryNumber given, MemoryKind of, const GpuExport& how) : number(given), kind(of), shared(how) {}
  const MemoryNumber number;
  const MemoryKind kind;
  const GpuExport shared;  // of GPU memory
};

// A memory of another agent, or of this one as the far end. Without a peer it cannot be reached.
class PeerMemory : public Metadata {
 public:
  PeerMemory(std::shared_ptr<Peer> of, MemoryNumber given, std::uint64_t at)
      : peer(std::move(of)), number(given), allocation(at) {}
  const std::shared_ptr<Peer> peer;
  const MemoryNumber number;
  const std::uint64_t allocation;  // where that of GPU memory lies in this process; 0: as its owner says
};

// One transfer, cut into parts, which threads carry out in any order. It holds addresses and numbers, nothing of
// NIXL's. A part holds its memories while it is copied: no byte is touched after a memory has been removed or cancel().
class Request {
 public:
  // Checks everything and joins neighbours. Throws Refusal.
  Request(Operation operation, const KnownRanges& local, const KnownRanges& remote,
          std::shared_ptr<OwnMemoryTable> own_table);

  // For a new run; false while one is under way.
  bool begin(bool notifies, std::string message);
  // Copies one part, or finishes the run if it was the last. False: no part is left to take.
  bool copy_one_part() noexcept;
  // The parts that are left are not copied, and none is being copied on return. The run has ended then.
  void cancel() noexcept;

  Status status() const { return status_.load(std::memory_order_acquire); }
  std::size_t bytes() const { return bytes_; }
  std::size_t ranges() const { return ranges_; }  // as NIXL gave them
  std::size_t parts() const { return parts_.size(); }
  double seconds() const { return seconds_; }  // of the last run that has ended
  const Peer& peer() const { return *peer_; }
  bool on_gpu() const { return local_on_gpu_ || remote_on_gpu_; }

 private:
  static constexpr std::size_t nothing_to_take = std::size_t{1} << 62;
  struct Ends {
    std::size_t local, remote, own_memories, peer_memories;  // how many until here
  };

  struct Piece {
    std::uintptr_t local, remote;
    MemoryNumber own, theirs;
    std::size_t bytes;
  };
  void add(const Piece& piece, const OrderedGpuMemory& on_gpu);
  void end_part();
  Status copy(std::size_t part) noexcept;
  void copy_held(Ends from, Ends to);
  CopyOrder order_of(Ends from, Ends to) const;
  void finish() noexcept;

  const Operation operation_;
  const bool local_on_gpu_, remote_on_gpu_;
  bool by_owner_ = false;  // the other agent copies, as only it can lock the pages of its host memory
  std::size_t most_part_bytes_ = 0;
  const std::shared_ptr<OwnMemoryTable> own_table_;
  std::shared_ptr<Peer> peer_;
  std::vector<iovec> local_, remote_;
  std::vector<MemoryNumber> own_memories_, peer_memories_;
  std::vector<OrderedGpuMemory> own_on_gpu_;  // by_owner_: as many as own_memories_
  std::vector<Ends> parts_;                   // where each ends
  std::size_t bytes_ = 0, part_bytes_ = 0, ranges_ = 0;

  std::mutex starting_;
  std::atomic<Status> status_ = Status::success;  // of the run
  std::atomic<Status> failure_ = Status::success;
  std::atomic<std::size_t> taken_ = nothing_to_take, over_ = 0;
  std::atomic<int> copying_ = 0;
  bool notifies_ = false;
  std::string message_;
  Clock::time_point begun_;
  double seconds_ = 0;
};

}  // namespace waywiser_nixl
