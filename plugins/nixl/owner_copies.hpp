#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "agent_socket.hpp"
#include "copy_order.hpp"
#include "memory_table.hpp"
#include "nixl_types.hpp"

namespace waywiser_nixl {

// The connection of an agent that has called, and the GPU memory of its process that orders have opened.
class Caller {
 public:
  explicit Caller(Socket accepted) : socket(std::move(accepted)) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;
  ~Caller();

  // Where its memory lies in this process. Throws Refusal. Only for the thread of OwnerCopies.
  std::uint64_t open(const GpuDriver& gpu, const GpuExport& shared);

  const Socket socket;
  std::string agent;
  std::string read;  // and not understood yet
  bool greeted = false;

 private:
  std::map<std::array<unsigned char, 64>, std::uint64_t> opened_;
};

// A thread that carries out what other agents order: copies between their GPU memory and host memory of this agent,
// whose pages it locks. It begins with the first order. What orders say is not trusted.
class OwnerCopies {
 public:
  explicit OwnerCopies(std::shared_ptr<OwnMemoryTable> table) : table_(std::move(table)) {}
  OwnerCopies(const OwnerCopies&) = delete;
  OwnerCopies& operator=(const OwnerCopies&) = delete;
  ~OwnerCopies();  // the copy that is under way ends; others are not begun

  void give(std::shared_ptr<Caller> caller, CopyOrder order);

 private:
  struct Given {
    std::shared_ptr<Caller> caller;
    CopyOrder order;
  };

  void run();
  Status carry_out(Caller& caller, const CopyOrder& order) const;
  void check_host(const CopyOrder& order) const;
  static std::vector<iovec> ranges_here(Caller& caller, const GpuDriver& gpu, const CopyOrder& order);

  const std::shared_ptr<OwnMemoryTable> table_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::deque<Given> orders_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace waywiser_nixl
