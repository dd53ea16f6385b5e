#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/comm/held_memory.hpp"
#include "waywiser/comm/introduction.hpp"
#include "waywiser/comm/message.hpp"
#include "waywiser/comm/network_ways.hpp"

namespace waywiser {

// UCX beside the engine's own for what the plan wants otherwise between machines: a worker for each network device and
// set of transports. Used by the engine's thread.
class NetworkRails {
 public:
  // Throws what `status` means, if it is no success.
  using Check = std::function<void(ucs_status_t status, const std::string& what)>;
  // Opens what this machine has of the plan's rails, for a group of so many ranks.
  NetworkRails(const std::vector<NetworkWay>& ways, std::size_t ranks, Check check);
  NetworkRails(const NetworkRails&) = delete;
  NetworkRails& operator=(const NetworkRails&) = delete;
  // Without close() nothing is waited for: UCX is left as it is where it has connections.
  ~NetworkRails();

  std::vector<RailOffer> offers() const;
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me);
  void set_tag_key(ucp_tag_t key) noexcept { tag_key_ = key; }
  // Whether both ends have the rails.
  bool reach(std::size_t way, std::uint32_t peer, bool sends) { return !known_route(way, peer, sends).empty(); }
  // Why a message to or from the peer cannot go that way; empty: it can.
  std::string why_not(std::size_t way, std::uint32_t peer, bool sends) const;

  // Begin what message.railed waits for. The region stays as it is until then. Both ends know its length.
  void send(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message);
  void receive(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message);
  // True: all parts are there. Throws, too, when a part has another length than its share.
  bool test(Message& message);
  // Its parts are held until they are complete.
  void cancel(Message& message, HeldMemory& held) noexcept;

  void progress() {
    if (open_ != 0 || ++idle_turns_ % turns_when_idle == 0) progress_all();
  }
  // A connection that broke by itself: its peer's rank and why.
  std::optional<std::pair<std::uint32_t, ucs_status_t>> broken() const;
  void close(Deadline deadline) noexcept;

 private:
  struct Rail {
    std::string name;  // what it uses
    UcxContext context;
    ucp_worker_h worker = nullptr;
  };
  struct Connection {
    ucp_ep_h endpoint = nullptr;
    std::uint32_t peer = 0;
    ucs_status_t problem = UCS_OK;
  };
  // Of one way to or from one peer: a rail of each end for each share; empty when there is none.
  using Route = std::vector<std::pair<std::size_t, std::string>>;

  void open(const UcxRoad& road, std::size_t ranks);
  std::optional<std::size_t> rail_named(const std::string& name) const;
  Route find_route(std::size_t way, std::uint32_t peer, bool sends, bool turned) const;
  Route route(std::size_t way, std::uint32_t peer, bool sends) const;
  const Route& known_route(std::size_t way, std::uint32_t peer, bool sends);
  ucp_ep_h endpoint(std::uint32_t peer, std::size_t rail, const std::string& theirs);
  template <typename Post>
  void begin(std::size_t way, const Route& route, ConstRegion data, Message& message, Post post);
  UcxRequest take_last(RailedMessage& railed) noexcept;
  void progress_all();

  const std::vector<NetworkWay>& ways_;
  Check check_;
  std::vector<std::unique_ptr<Rail>> rails_;
  std::map<std::string, std::string> why_no_rail_;                     // by name
  std::vector<std::map<std::string, std::vector<std::byte>>> theirs_;  // by rank: addresses by name
  std::uint32_t me_ = 0;
  ucp_tag_t tag_key_ = 0;
  std::map<std::tuple<std::size_t, std::uint32_t, bool>, Route> routes_;
  std::map<std::tuple<std::uint32_t, std::size_t, std::string>, std::unique_ptr<Connection>> connections_;
  std::size_t open_ = 0, open_on_gpus_ = 0;  // parts under way
  int gpu_ = -1, ordinal_ = -1;
  bool unclosed_ = false;
  unsigned unfinished_ = 0;  // parts that were given up, and are not complete
  static constexpr unsigned turns_when_idle = 64;
  unsigned idle_turns_ = 0;
};

}  // namespace waywiser
