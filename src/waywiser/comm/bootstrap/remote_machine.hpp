#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// Rank 0's hold on the machine of rank 1 while roads between the two are measured: signs of life, and a fresh line to a
// fresh peer process there whenever one is needed. Rank 1 serves it with a MachineService.
class RemoteMachine {
 public:
  // Gives rank 0's end of a fresh line; rank 1 is told to take the other.
  using Meet = std::function<PeerSocket()>;
  // `host`: of rank 1, for messages. `interval`: between signs of life.
  RemoteMachine(PeerSocket line, std::string host, Meet meet, Seconds interval = 1);
  RemoteMachine(const RemoteMachine&) = delete;
  RemoteMachine& operator=(const RemoteMachine&) = delete;
  // Without dismiss() before, rank 1 takes rank 0 for dead.
  ~RemoteMachine();

  // Throws io when rank 1 has ended, and what `meet` throws.
  PeerSocket connect();
  // Rank 1 is needed no more. Says nothing when it has ended.
  void dismiss() noexcept;

 private:
  void show_life();
  void tell(const char* what);

  PeerChannel channel_;
  const std::string host_;
  const Meet meet_;
  const Seconds interval_;
  std::mutex mutex_;  // of the following, and of sending
  std::condition_variable ending_changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace waywiser
