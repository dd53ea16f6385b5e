#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "agent_socket.hpp"
#include "gpu_driver.hpp"
#include "memory_table.hpp"
#include "nixl_types.hpp"

namespace waywiser_nixl {

// Another agent of this machine, or this agent itself: its registered memories, the way to their bytes, and the
// connection on which notifications go. The connection breaks when that process ends.
class Peer {
  class BounceBuffer;

 public:
  // Of a part that goes by a system call. A memory that is removed waits for the parts under way, so a part is short.
  static constexpr std::size_t most_part_bytes = std::size_t{1} << 20;

  using Keep = std::function<void(const std::string& message)>;
  // This agent itself, which keeps its own notifications.
  Peer(std::shared_ptr<MemoryTable> table, Keep keep);
  // Meets the other agent. Throws Refusal; not_supported if it cannot be reached from here.
  Peer(const std::string& own_name, const AgentAddress& address);
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer();

  const MemoryTable& table() const { return *table_; }
  bool is_here() const { return here_; }  // in this process
  const Socket& socket() const { return socket_; }

  bool gone() const { return gone_.load(std::memory_order_acquire); }
  void set_gone() { gone_.store(true, std::memory_order_release); }

  // Sent when it returns. Throws Refusal.
  void notify(const std::string& message);

  struct Memories {
    std::span<const iovec> ranges;
    bool on_gpu;
  };
  // As many bytes on both sides, of memories that are held; at most most_part_bytes into and out of host memory of
  // another process. Throws Refusal.
  void copy(Operation operation, Memories local, Memories remote) const;

  // Where an allocation of the other process lies in this one. Throws Refusal.
  std::uint64_t open_gpu_memory(const GpuExport& shared);

 private:
  void copy_on_host(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const;
  void try_memory(const Reply& reply) const;
  std::unique_ptr<BounceBuffer> take_buffer() const;

  Socket socket_;
  std::shared_ptr<MemoryTable> table_;
  Keep keep_;
  pid_t process_ = 0;
  bool here_ = false;
  std::atomic<bool> gone_ = false;
  std::mutex sending_;
  const GpuDriver* const gpu_ = GpuDriver::find();
  std::mutex opening_;
  std::map<std::array<unsigned char, 64>, std::uint64_t> opened_;  // allocations, and where they lie here
  mutable std::mutex resting_;
  mutable std::vector<std::unique_ptr<BounceBuffer>> buffers_;  // as many as were in use at once
};

}  // namespace waywiser_nixl
