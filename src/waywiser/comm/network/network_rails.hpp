#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/introduction.hpp"
#include "waywiser/comm/network/network_paths.hpp"
#include "waywiser/comm/network/ucx_messages.hpp"
#include "waywiser/transport/ucx/rail_parts.hpp"

namespace waywiser {

// Long messages between machines, by the plan's paths for them: UCX workers beside that of UcxMessages, one for each
// network device and set of transports. A header precedes a message, by UCX's default path.
class NetworkRails final : public Carrier {
 public:
  // Of one message.
  struct Request final : CarrierRequest {
    const std::vector<UcxRail>* rails = nullptr;
    RailParts parts;
    std::size_t bytes = 0;  // of all of them
    bool on_gpu = false;
    // A header with the sender's tag and length: the receiver compares them.
    bool headed = false, head_read = false;
    MessageHead head{};
    Message head_message;
  };

  // Opens the plan's rails that this machine has, for a group of `ranks` ranks.
  NetworkRails(const NetworkPaths& ways, std::size_t ranks, UcxMessages& ucx);
  NetworkRails(const NetworkRails&) = delete;
  NetworkRails& operator=(const NetworkRails&) = delete;

  std::vector<RailOffer> offers() const;
  void introduce(const std::vector<Introduction>& ranks, std::uint32_t me) override;
  bool takes(const Message& message) override { return way_of(message).has_value(); }
  void send(Message& message, Awaited awaited) override;
  void receive(Message& message) override;
  // Also throws if a part's length differs from its share.
  bool test(Message& message) override;
  // The parts are held until they are complete.
  void cancel(Message& message) noexcept override;
  std::optional<Received> probe(std::uint32_t, Tag, Tag) override { return {}; }  // the header is UCX's

  // Why a message to or from the peer cannot go that way; empty: it can.
  std::string why_not(std::size_t way, std::uint32_t peer, bool sends) const;

  // The same by one way, without a header: both ends know the way, the tag and the length.
  void send_by(std::size_t way, ConstRegion data, Message& message);
  void receive_by(std::size_t way, Region into, Message& message);
  // Receives a message whose header has been received. If the length differs, or this end has no such way, nothing is
  // received: the caller compares.
  void receive_headed(const MessageHead& head, Message& message);

  void progress() {
    if (open_ != 0 || ++idle_turns_ % turns_when_idle == 0) progress_all();
  }
  void tell_sent(SentByMechanism& sent) const override { sent["UCX, paths of the plan"] += sent_.get(); }
  std::optional<std::string> broken() const override;
  void close(Deadline deadline, const std::function<void()>& turn) noexcept override;

 private:
  struct Member {
    Member(std::string uses, UcxContext context)
        : name(std::move(uses)), worker(std::move(context), UcxThreads::several) {}
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
  std::optional<std::size_t> way_of(const Message& message);
  static Request& request_of(Message& message) { return static_cast<Request&>(*message.request); }
  Request& begin(std::size_t way, const Route& route, ConstRegion data, Message& message);
  void check_begun(Request& request, UcxStatus status, std::uint32_t peer);
  bool test_head(Message& message);
  bool test_parts(Message& message);
  void cancel_parts(Message& message);
  std::shared_ptr<void> gpu_of(const Request& request) const;
  void end(const Request& request) noexcept;
  void progress_all() noexcept;

  const NetworkPaths& paths_;
  const std::vector<NetworkPath>& ways_;
  UcxMessages& ucx_;
  std::vector<bool> same_machine_;  // by rank
  std::map<std::tuple<std::uint32_t, const UcxWorker*, std::string>, UcxEndpoint> endpoints_;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<std::string, std::string> why_no_rail_;                     // by name
  std::vector<std::map<std::string, std::vector<std::byte>>> theirs_;  // by rank: addresses by name
  std::vector<PlanEnds> ends_;                                         // by rank
  std::map<std::tuple<std::size_t, std::uint32_t, bool>, Route> routes_;
  std::size_t open_ = 0, open_on_gpus_ = 0;  // messages under way
  int gpu_ = -1, ordinal_ = -1;
  SentBytes sent_;
  static constexpr unsigned turns_when_idle = 64;
  unsigned idle_turns_ = 0;
};

}  // namespace waywiser
