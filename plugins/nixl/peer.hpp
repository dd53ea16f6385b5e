#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent_socket.hpp"
#include "copy_order.hpp"
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
  const std::shared_ptr<MemoryTable>& shared_table() const { return table_; }
  bool is_here() const { return here_; }  // in this process
  const Socket& socket() const { return socket_; }

  bool gone() const { return gone_.load(std::memory_order_acquire); }
  // The other end has closed the connection: it copies nothing any more.
  void set_ended();
  // Takes what has come on the connection, without waiting: answers to orders. False: the connection is over.
  bool hear();

  // Sent when it returns. Throws Refusal.
  void notify(const std::string& message);

  struct Memories {
    std::span<const iovec> ranges;
    bool on_gpu;
  };
  // As many bytes on both sides, of memories that are held. Throws Refusal.
  void copy(Operation operation, Memories local, Memories remote) const;

  // Whether it may be asked to copy: another process, with a driver, that has not refused yet.
  bool takes_orders() const { return takes_orders_.load(std::memory_order_relaxed); }
  // The other agent copies; waits for its answer. `held` is let go when it has answered or ended, which may be after
  // the deadline. False: it cannot copy. Throws Refusal.
  bool order(CopyOrder order, std::shared_ptr<const void> held);

  // Where an allocation of the other process lies in this one. Throws Refusal.
  std::uint64_t open_gpu_memory(const GpuExport& shared);

 private:
  void copy_on_host(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const;
  void try_memory(const Reply& reply);
  std::unique_ptr<BounceBuffer> take_buffer() const;
  void copy_by_buffer(Operation operation, std::span<const iovec> local, std::span<const iovec> remote) const;
  bool send_frame(std::uint64_t kind, const std::string& body);
  std::chrono::milliseconds patience_for(const CopyOrder& order) const;
  Status wait_for_answer(std::uint64_t number, std::chrono::milliseconds patience);

  Socket socket_;
  std::shared_ptr<MemoryTable> table_;
  Keep keep_;
  pid_t process_ = 0;
  bool here_ = false;
  std::atomic<bool> gone_ = false;
  std::mutex sending_;

  struct Ordered {
    std::optional<Status> answer;
    std::shared_ptr<const void> held;
    bool is_late = false;  // nobody waits for it any more
  };
  Key key_{};
  std::atomic<bool> takes_orders_ = false;
  std::mutex ordering_;
  std::condition_variable answered_;
  std::map<std::uint64_t, Ordered> ordered_;
  std::uint64_t last_order_ = 0;
  bool ended_ = false;
  std::string heard_;  // and not understood yet; only for the thread of the post office

  const GpuDriver* const gpu_ = GpuDriver::find();
  std::mutex opening_;
  std::map<std::array<unsigned char, 64>, std::uint64_t> opened_;  // allocations, and where they lie here
  mutable std::mutex resting_;
  mutable std::vector<std::unique_ptr<BounceBuffer>> buffers_;  // as many as were in use at once
};

}  // namespace waywiser_nixl
