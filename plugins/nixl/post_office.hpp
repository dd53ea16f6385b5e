#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "agent_socket.hpp"
#include "nixl_types.hpp"
#include "peer.hpp"

namespace waywiser_nixl {

// A thread that answers agents who connect, keeps their notifications, and sees when the connection to a peer breaks.
class PostOffice {
 public:
  PostOffice(const std::string& socket_name, int table_descriptor);  // throws Refusal
  PostOffice(const PostOffice&) = delete;
  PostOffice& operator=(const PostOffice&) = delete;
  ~PostOffice();

  void watch(const std::shared_ptr<Peer>& peer);
  void keep(const std::string& agent, std::string message);
  Notifications take();

 private:
  struct Caller {
    Socket socket;
    std::string agent;
    std::string read;  // and not understood yet
    bool greeted = false;
  };

  void run();
  void accept_callers();
  bool hear(Caller& caller);  // false: the connection is over
  bool understand(Caller& caller);
  bool greet(Caller& caller);
  bool listen_to(int socket, std::uint64_t number) const;
  void peer_ended(std::uint64_t number);

  Socket listener_, events_, stop_event_;
  int table_descriptor_;
  std::uint64_t word_;  // for others to read
  std::map<std::uint64_t, Caller> callers_;
  std::uint64_t next_caller_ = 0;

  std::mutex mutex_;
  std::condition_variable taken_;
  bool stopped_ = false;
  Notifications kept_;
  std::size_t kept_bytes_ = 0;
  std::map<std::uint64_t, std::weak_ptr<Peer>> peers_;
  std::uint64_t next_peer_ = 0;

  std::thread thread_;
};

}  // namespace waywiser_nixl
