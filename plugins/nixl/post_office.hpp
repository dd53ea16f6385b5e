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
#include "owner_copies.hpp"
#include "peer.hpp"

namespace waywiser_nixl {

// A thread that answers agents who connect, keeps their notifications, hands on their orders to copy, hears what peers
// answer to ours, and sees when the connection to a peer breaks.
class PostOffice {
 public:
  PostOffice(const std::string& socket_name, const std::shared_ptr<OwnMemoryTable>& table);  // throws Refusal
  PostOffice(const PostOffice&) = delete;
  PostOffice& operator=(const PostOffice&) = delete;
  ~PostOffice();

  void watch(const std::shared_ptr<Peer>& peer);
  void keep(const std::string& agent, std::string message);
  Notifications take();

 private:
  void run();
  void accept_callers();
  bool hear(const std::shared_ptr<Caller>& caller);  // false: the connection is over
  bool understand(const std::shared_ptr<Caller>& caller);
  bool greet(Caller& caller) const;
  bool take_order(const std::shared_ptr<Caller>& caller, std::string_view text);
  void hear_peer(std::uint64_t number);
  bool listen_to(int socket, std::uint64_t number) const;

  Socket listener_, events_, stop_event_;
  const int table_descriptor_;
  const Proof proof_;  // for others to read
  std::map<std::uint64_t, std::shared_ptr<Caller>> callers_;
  OwnerCopies copies_;
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
