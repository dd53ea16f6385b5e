#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/message/held_memory.hpp"
#include "waywiser/comm/message/message.hpp"
#include "waywiser/comm/network/network_paths.hpp"

namespace waywiser {

// UCX workers beside the engine's, for paths of the plan between machines that need them: one for each network device
// and set of transports. Used by the engine's thread.
class NetworkRails {
 public:
  // Throws the error of `status`, if it is one.
  using Check = std::function<void(ucs_status_t status, const std::string& what)>;
  // Opens the plan's rails that this machine has, for a group of `ranks` ranks.
  NetworkRails(const std::vector<NetworkPath>& ways, std::size_t ranks, Check check);
  NetworkRails(const NetworkRails&) = delete;
  NetworkRails& operator=(const NetworkRails&) = delete;

  std::vector<RailOffer> offers() const;
  // `ends`: of this rank and each other rank.
  void introduce(const std::vector<Introduction>& ranks, std::vector<PlanEnds> ends);
  void set_tag_key(ucp_tag_t key) noexcept { tag_key_ = key; }
  // Whether both ends have the rails.
  bool reach(std::size_t way, std::uint32_t peer, bool sends) { return !known_route(way, peer, sends).rails.empty(); }
  // Why a message to or from the peer cannot go that way; empty: it can.
  std::string why_not(std::size_t way, std::uint32_t peer, bool sends) const;

  // Start what message.railed then waits for. The region must stay unchanged until then. Both ends know its length.
  void send(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message);
  void receive(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message);
  // True: all parts have arrived. Also throws if a part's length differs from its share.
  bool test(Message& message);
  // The parts are held until they are complete.
  void cancel(Message& message, HeldMemory& held) noexcept;

  void progress() {
    if (open_ != 0 || ++idle_turns_ % turns_when_idle == 0) progress_all();
  }
  // A connection that broke by itself; nullptr: none.
  const UcxEndpoint* broken() const noexcept;
  void close(Deadline deadline) noexcept;

 private:
  struct Member {
    Member(std::string uses, UcxContext context)
        : name(std::move(uses)), worker(std::move(context), UCS_THREAD_MODE_SERIALIZED) {}
    std::string name;  // the transports and devices
    UcxWorker worker;
  };
  // One way to or from one peer: a rail for each share; empty: not available.
  struct Route {
    std::vector<UcxRail> rails;
    std::vector<std::string> theirs;  // names of the rails at the peer
  };

  void open(const UcxSelection& selection, std::size_t ranks);
  Member* member_named(const std::string& name) const;
  Route find_route(std::size_t way, std::uint32_t peer, bool sends, bool turned) const;
  Route route(std::size_t way, std::uint32_t peer, bool sends) const;
  Route& known_route(std::size_t way, std::uint32_t peer, bool sends);
  void connect(Route& route, std::uint32_t peer);
  const UcxEndpoint& endpoint(std::uint32_t peer, const UcxRail& rail, const std::string& theirs);
  RailedMessage& begin(std::size_t way, const Route& route, ConstRegion data, Message& message);
  void check_begun(RailedMessage& railed, ucs_status_t status, std::uint32_t peer);
  std::shared_ptr<void> gpu_of(const RailedMessage& railed) const;
  void end(const RailedMessage& railed) noexcept;
  void progress_all() noexcept;

  const std::vector<NetworkPath>& ways_;
  Check check_;
  std::map<std::tuple<std::uint32_t, const UcxWorker*, std::string>, UcxEndpoint> endpoints_;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::string, std::string> why_no_rail_;                     // by name
  std::vector<std::map<std::string, std::vector<std::byte>>> theirs_;  // by rank: addresses by name
  std::vector<PlanEnds> ends_;                                         // by rank
  ucp_tag_t tag_key_ = 0;
  std::map<std::tuple<std::size_t, std::uint32_t, bool>, Route> routes_;
  std::size_t open_ = 0, open_on_gpus_ = 0;  // messages under way
  int gpu_ = -1, ordinal_ = -1;
  static constexpr unsigned turns_when_idle = 64;
  unsigned idle_turns_ = 0;
};

}  // namespace waywiser
