#include "waywiser/comm/network/network_rails.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/tag.hpp"
#include "waywiser/topology/system_files.hpp"
#include "waywiser/transport/ucx/current_gpu.hpp"

namespace waywiser {
namespace {

std::string name_of(const UcxSelection& selection) {
  std::string name = selection.transports + " on " + (selection.devices.empty() ? "any device" : selection.devices);
  for (const auto& [variable, value] : selection.settings) name += ", " + variable + "=" + value;
  return name;
}

bool is_here(const std::string& device) {
  const SystemFiles files("");
  const std::string card = device.substr(0, device.find(':'));
  return device.empty() || files.exists("/sys/class/net/" + device) || files.exists("/sys/class/infiniband/" + card);
}

}  // namespace

NetworkRails::NetworkRails(const std::vector<NetworkPath>& ways, std::size_t ranks, Check check)
    : ways_(ways), check_(std::move(check)) {
  for (const NetworkPath& way : ways_)
    for (const bool sends : {true, false})
      for (const bool turned : {false, true})
        for (const UcxSelection& selection : way.selections(sends, turned)) open(selection, ranks);
}

// A rail that cannot be opened is not offered.
void NetworkRails::open(const UcxSelection& selection, std::size_t ranks) {
  const std::string name = name_of(selection);
  if (member_named(name) != nullptr || why_no_rail_.contains(name)) return;
  const auto refuse = [&](const std::string& why) { why_no_rail_[name] = why; };
  if (!is_here(selection.devices)) return refuse("this machine has no " + selection.devices);
  try {
    const UcxContext::Trial trial = UcxContext::try_selection(selection);
    const std::string missing = trial.status == UCS_OK ? trial.lacks(selection) : "";
    if (!missing.empty()) return refuse("UCX has no " + missing + " here");
    members_.push_back(std::make_unique<Member>(name, UcxContext(selection, ranks)));
  } catch (const Error& error) {
    refuse(error.what());
  }
}

NetworkRails::Member* NetworkRails::member_named(const std::string& name) const {
  const auto found = std::ranges::find_if(members_, [&](const auto& member) { return member->name == name; });
  return found == members_.end() ? nullptr : found->get();
}

std::vector<RailOffer> NetworkRails::offers() const {
  std::vector<RailOffer> offers;
  for (const auto& member : members_) offers.push_back({member->name, member->worker.address()});
  return offers;
}

void NetworkRails::introduce(const std::vector<Introduction>& ranks, std::vector<PlanEnds> ends) {
  ends_ = std::move(ends);
  for (const Introduction& other : ranks) {
    auto& theirs = theirs_.emplace_back();
    for (const RailOffer& offer : other.rails) theirs[offer.name] = offer.address;
  }
}

NetworkRails::Route NetworkRails::find_route(std::size_t way, std::uint32_t peer, bool sends, bool turned) const {
  const std::vector<UcxSelection> mine = ways_[way].selections(sends, turned),
                                  theirs = ways_[way].selections(!sends, turned);
  Route route;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    Member* member = member_named(name_of(mine[i]));
    const std::string other = name_of(theirs[i]);
    if (member == nullptr || !theirs_[peer].contains(other)) return {};
    route.rails.push_back({&member->worker, nullptr, member->name});
    route.theirs.push_back(other);
  }
  return route;
}

// Each end may also know the other end's devices by its own names.
NetworkRails::Route NetworkRails::route(std::size_t way, std::uint32_t peer, bool sends) const {
  const bool turned = ends_[peer].here != sends;
  Route route = find_route(way, peer, sends, turned);
  return route.rails.empty() ? find_route(way, peer, sends, !turned) : route;
}

NetworkRails::Route& NetworkRails::known_route(std::size_t way, std::uint32_t peer, bool sends) {
  const auto [found, fresh] = routes_.insert({{way, peer, sends}, {}});
  if (fresh) found->second = route(way, peer, sends);
  return found->second;
}

std::string NetworkRails::why_not(std::size_t way, std::uint32_t peer, bool sends) const {
  if (!route(way, peer, sends).rails.empty()) return {};
  for (const bool turned : {false, true})
    for (const UcxSelection& selection : ways_[way].selections(sends, turned)) {
      const auto found = why_no_rail_.find(name_of(selection));
      if (found != why_no_rail_.end() && is_here(selection.devices)) return found->second;
    }
  return "rank " + std::to_string(peer) + " and this one lack " + label(ways_[way].path);
}

void NetworkRails::connect(Route& route, std::uint32_t peer) {
  for (std::size_t i = 0; i < route.rails.size(); ++i)
    if (route.rails[i].endpoint == nullptr) route.rails[i].endpoint = &endpoint(peer, route.rails[i], route.theirs[i]);
}

const UcxEndpoint& NetworkRails::endpoint(std::uint32_t peer, const UcxRail& rail, const std::string& theirs) {
  UcxEndpoint& known = endpoints_.try_emplace({peer, rail.worker, theirs}, peer).first->second;
  if (!known.is_open())
    check_(rail.worker->connect(known, theirs_[peer].at(theirs), true),
           "connect to rank " + std::to_string(peer) + " by " + rail.name);
  return known;
}

RailedMessage& NetworkRails::begin(std::size_t way, const Route& route, ConstRegion data, Message& message) {
  RailedMessage& railed = *message.railed;
  if (route.rails.empty()) throw Error(ErrorKind::unavailable, "no rails for " + label(ways_[way].path));
  if (data.place.is_gpu() && std::exchange(gpu_, data.place.index) != data.place.index)
    ordinal_ = cuda_ordinal_of(data.place.index);
  railed.rails = &route.rails;
  railed.bytes = data.bytes;
  railed.on_gpu = data.place.is_gpu();
  return railed;
}

// UCX accesses GPU memory through the thread's current GPU.
std::shared_ptr<void> NetworkRails::gpu_of(const RailedMessage& railed) const {
  return railed.on_gpu ? make_gpu_current(ordinal_) : nullptr;
}

void NetworkRails::check_begun(RailedMessage& railed, ucs_status_t status, std::uint32_t peer) {
  if (railed.parts.is_open()) {
    ++open_;
    if (railed.on_gpu) ++open_on_gpus_;
  }
  if (status != UCS_OK) check_(status, "reach rank " + std::to_string(peer));
}

void NetworkRails::end(const RailedMessage& railed) noexcept {
  --open_;
  if (railed.on_gpu) --open_on_gpus_;
}

void NetworkRails::send(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message) {
  message.receiving = false;
  message.peer = peer;
  Route& route = known_route(way, peer, true);
  RailedMessage& railed = begin(way, route, data, message);
  connect(route, peer);
  const auto gpu = gpu_of(railed);
  check_begun(railed, railed.parts.send(route.rails, ways_[way].percents, data, tag ^ tag_key_), peer);
}

void NetworkRails::receive(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message) {
  message.receiving = true;
  message.peer = peer;
  const Route& route = known_route(way, peer, false);
  RailedMessage& railed = begin(way, route, into, message);
  const auto gpu = gpu_of(railed);
  check_begun(railed, railed.parts.receive(route.rails, ways_[way].percents, into, tag ^ tag_key_, matched_bits), peer);
}

bool NetworkRails::test(Message& message) {
  RailedMessage& railed = *message.railed;
  if (!railed.parts.is_open()) return true;
  const ucp_tag_t said = railed.headed ? railed.head[0] : message.tag;
  const auto ended = [&](const RailParts::Part& part, ucs_status_t status, const ucp_tag_recv_info_t& received) {
    if (!railed.parts.is_open()) end(railed);
    if (status == UCS_OK && message.receiving && received.length != part.bytes) status = UCS_ERR_MESSAGE_TRUNCATED;
    if (status == UCS_OK && message.receiving && (received.sender_tag ^ tag_key_) != said)
      status = UCS_ERR_INVALID_PARAM;
    if (status != UCS_OK)
      check_(status, (message.receiving ? "receive from rank " : "send to rank ") + std::to_string(message.peer) +
                         " by " + (*railed.rails)[part.rail].name);
  };
  return railed.parts.test(*railed.rails, ended);
}

void NetworkRails::cancel(Message& message, HeldMemory& held) noexcept {
  RailedMessage& railed = *message.railed;
  if (railed.parts.is_open()) end(railed);
  for (const RailParts::Part& part : railed.parts.take()) {
    UcxWorker* worker = (*railed.rails)[part.rail].worker;
    worker->cancel(part.request);
    if (worker->give_up(part.request)) continue;
    held.add(message.peer, [worker, request = part.request] { return worker->is_over(request); });
  }
}

void NetworkRails::progress_all() noexcept {
  const std::shared_ptr<void> gpu = open_on_gpus_ != 0 ? make_gpu_current(ordinal_) : nullptr;
  for (const auto& member : members_) member->worker.progress();
}

const UcxEndpoint* NetworkRails::broken() const noexcept {
  for (const auto& member : members_)
    if (const UcxEndpoint* endpoint = member->worker.broken()) return endpoint;
  return nullptr;
}

void NetworkRails::close(Deadline deadline) noexcept {
  for (const auto& member : members_)
    if (!member->worker.close(deadline, [this] { progress_all(); })) member->worker.leave();
}

}  // namespace waywiser
