#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// Rank 0's control of rank 1's machine while paths between the two are measured: signs of life, and a new line to a new
// peer process there on request. Rank 1 serves it with a MachineService.
class RemoteMachine {
 public:
  // Returns rank 0's end of a new line; rank 1 takes the other end.
  using Meet = std::function<PeerSocket()>;
  // `host`: rank 1's machine, for messages. `interval`: between signs of life, in seconds.
  RemoteMachine(PeerSocket line, std::string host, Meet meet, Seconds interval = 1);
  RemoteMachine(const RemoteMachine&) = delete;
  RemoteMachine& operator=(const RemoteMachine&) = delete;
  // Without an earlier dismiss(), rank 1 treats rank 0 as dead.
  ~RemoteMachine();

  // Throws io if rank 1 has ended, and the errors of `meet`.
  PeerSocket connect();
  // Rank 1 is no longer needed. Reports nothing if it has ended.
  void dismiss() noexcept;

 private:
  void show_life();
  void tell(const char* what);

  PeerChannel channel_;
  const std::string host_;
  const Meet meet_;
  const Seconds interval_;
  std::mutex mutex_;  // guards the following, and sending
  std::condition_variable ending_changed_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace waywiser
