#include "waywiser/comm/network_rails.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/tag.hpp"
#include "waywiser/topology/system_files.hpp"
#include "waywiser/transport/split/split.hpp"
#include "waywiser/transport/ucx/current_gpu.hpp"

namespace waywiser {
namespace {

const UcxFunctions& ucx() { return ucx_library().functions(); }

std::string name_of(const UcxRoad& road) {
  std::string name = road.transports + " on " + (road.devices.empty() ? "any device" : road.devices);
  for (const auto& [variable, value] : road.settings) name += ", " + variable + "=" + value;
  return name;
}

bool is_here(const std::string& device) {
  const SystemFiles files("");
  const std::string card = device.substr(0, device.find(':'));
  return device.empty() || files.exists("/sys/class/net/" + device) || files.exists("/sys/class/infiniband/" + card);
}

}  // namespace

NetworkRails::NetworkRails(const std::vector<NetworkWay>& ways, std::size_t ranks, Check check)
    : ways_(ways), check_(std::move(check)) {
  for (const NetworkWay& way : ways_)
    for (const bool sends : {true, false})
      for (const bool turned : {false, true})
        for (const UcxRoad& road : way.roads(sends, turned)) open(road, ranks);
}

NetworkRails::~NetworkRails() {
  const bool connected = unclosed_ || unfinished_ != 0 || std::ranges::any_of(connections_, [](const auto& known) {
                           return known.second->endpoint != nullptr;
                         });
  for (const auto& rail : rails_)
    if (connected)
      rail->context.abandon();
    else
      ucx().worker_destroy(rail->worker);
}

// What cannot be opened is not offered.
void NetworkRails::open(const UcxRoad& road, std::size_t ranks) {
  const std::string name = name_of(road);
  if (rail_named(name) || why_no_rail_.contains(name)) return;
  const auto refuse = [&](const std::string& why) { why_no_rail_[name] = why; };
  if (!is_here(road.devices)) return refuse("this machine has no " + road.devices);
  try {
    const UcxContext::Trial trial = UcxContext::try_road(road);
    for (const std::string& transport : transports_of(road))
      if (trial.status == UCS_OK && !trial.has(transport)) return refuse("UCX has no " + transport + " here");
    auto rail = std::make_unique<Rail>(name, UcxContext(road, ranks));
    ucp_worker_params_t parameters{};
    parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
    check_ucx(ucx().worker_create(rail->context.get(), &parameters, &rail->worker), "create a worker");
    rails_.push_back(std::move(rail));
  } catch (const Error& error) {
    refuse(error.what());
  }
}

std::optional<std::size_t> NetworkRails::rail_named(const std::string& name) const {
  const auto found = std::ranges::find_if(rails_, [&](const auto& rail) { return rail->name == name; });
  return found == rails_.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - rails_.begin()));
}

std::vector<RailOffer> NetworkRails::offers() const {
  std::vector<RailOffer> offers;
  for (const auto& rail : rails_) offers.push_back({rail->name, address_of(rail->worker)});
  return offers;
}

void NetworkRails::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  me_ = me;
  for (const Introduction& other : ranks) {
    auto& theirs = theirs_.emplace_back();
    for (const RailOffer& offer : other.rails) theirs[offer.name] = offer.address;
  }
}

NetworkRails::Route NetworkRails::find_route(std::size_t way, std::uint32_t peer, bool sends, bool turned) const {
  const std::vector<UcxRoad> mine = ways_[way].roads(sends, turned), theirs = ways_[way].roads(!sends, turned);
  Route route;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const auto rail = rail_named(name_of(mine[i]));
    const std::string other = name_of(theirs[i]);
    if (!rail || !theirs_[peer].contains(other)) return {};
    route.emplace_back(*rail, other);
  }
  return route;
}

// Where both ends could be the one that the plan was made on, it is that of the lower rank.
NetworkRails::Route NetworkRails::route(std::size_t way, std::uint32_t peer, bool sends) const {
  const bool lower_sends = (me_ < peer) == sends;
  Route route = find_route(way, peer, sends, !lower_sends);
  return route.empty() ? find_route(way, peer, sends, lower_sends) : route;
}

const NetworkRails::Route& NetworkRails::known_route(std::size_t way, std::uint32_t peer, bool sends) {
  const auto [found, fresh] = routes_.insert({{way, peer, sends}, {}});
  if (fresh) found->second = route(way, peer, sends);
  return found->second;
}

std::string NetworkRails::why_not(std::size_t way, std::uint32_t peer, bool sends) const {
  if (!route(way, peer, sends).empty()) return {};
  for (const bool turned : {false, true})
    for (const UcxRoad& road : ways_[way].roads(sends, turned)) {
      const auto found = why_no_rail_.find(name_of(road));
      if (found != why_no_rail_.end() && is_here(road.devices)) return found->second;
    }
  return "rank " + std::to_string(peer) + " and this one lack " + label(ways_[way].path);
}

ucp_ep_h NetworkRails::endpoint(std::uint32_t peer, std::size_t rail, const std::string& theirs) {
  std::unique_ptr<Connection>& known = connections_[{peer, rail, theirs}];
  if (known) return known->endpoint;
  auto connection = std::make_unique<Connection>();
  connection->peer = peer;
  ucp_ep_params_t parameters{};
  parameters.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  parameters.address = reinterpret_cast<const ucp_address_t*>(theirs_[peer].at(theirs).data());
  parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  parameters.err_handler.arg = connection.get();
  parameters.err_handler.cb = [](void* argument, ucp_ep_h, ucs_status_t status) {
    static_cast<Connection*>(argument)->problem = status;
  };
  check_(ucx().ep_create(rails_[rail]->worker, &parameters, &connection->endpoint),
         "connect to rank " + std::to_string(peer) + " by " + rails_[rail]->name);
  known = std::move(connection);
  return known->endpoint;
}

// Each rail's share of the bytes. UCX works on a GPU's memory with the thread's current GPU.
template <typename Post>
void NetworkRails::begin(std::size_t way, const Route& route, ConstRegion data, Message& message, Post post) {
  RailedMessage& railed = *message.railed;
  if (route.empty()) throw Error(ErrorKind::unavailable, "no rails for " + label(ways_[way].path));
  if (data.place.is_gpu() && std::exchange(gpu_, data.place.index) != data.place.index)
    ordinal_ = cuda_ordinal_of(data.place.index);
  railed.bytes = data.bytes;
  railed.on_gpu = data.place.is_gpu();
  const std::shared_ptr<void> gpu = railed.on_gpu ? make_gpu_current(ordinal_) : nullptr;
  const std::vector<Bytes> shares = split_bytes(ways_[way].percents, data.bytes);
  Bytes at = 0;
  for (std::size_t i = 0; i < route.size(); at += shares[i++]) {
    if (shares[i] == 0) continue;
    const UcxRequest request = post(i, data.slice(at, shares[i]));
    if (UCS_PTR_IS_ERR(request)) check_(UCS_PTR_STATUS(request), "reach rank " + std::to_string(message.peer));
    if (request == nullptr) continue;
    railed.parts.push_back({request, route[i].first, shares[i]});
    ++open_;
    if (railed.on_gpu) ++open_on_gpus_;
  }
}

void NetworkRails::send(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message) {
  message.receiving = false;
  message.peer = peer;
  const Route& route = known_route(way, peer, true);
  begin(way, route, data, message, [&](std::size_t i, ConstRegion part) {
    const ucp_request_param_t parameters = parameters_for(part.place);
    return ucx().tag_send_nbx(endpoint(peer, route[i].first, route[i].second), part.data, part.bytes, tag ^ tag_key_,
                              &parameters);
  });
}

void NetworkRails::receive(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message) {
  message.receiving = true;
  message.peer = peer;
  const Route& route = known_route(way, peer, false);
  begin(way, route, into, message, [&](std::size_t i, ConstRegion part) {
    ucp_request_param_t parameters = parameters_for(part.place);
    // Old versions (1.13) do not tell what came when a receive completes at once.
    parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    return ucx().tag_recv_nbx(rails_[route[i].first]->worker, const_cast<std::byte*>(part.data), part.bytes,
                              tag ^ tag_key_, matched_bits, &parameters);
  });
}

bool NetworkRails::test(Message& message) {
  RailedMessage& railed = *message.railed;
  const ucp_tag_t said = railed.headed ? railed.head[0] : message.tag;
  while (!railed.parts.empty()) {
    const RailedMessage::Part part = railed.parts.back();
    ucp_tag_recv_info_t info{};
    info.length = part.bytes;
    ucs_status_t status =
        message.receiving ? ucx().tag_recv_request_test(part.request, &info) : ucx().request_check_status(part.request);
    if (status == UCS_INPROGRESS) return false;
    ucx().request_free(take_last(railed));
    if (status == UCS_OK && info.length != part.bytes) status = UCS_ERR_MESSAGE_TRUNCATED;
    if (status == UCS_OK && message.receiving && (info.sender_tag ^ tag_key_) != said) status = UCS_ERR_INVALID_PARAM;
    if (status != UCS_OK)
      check_(status, (message.receiving ? "receive from rank " : "send to rank ") + std::to_string(message.peer) +
                         " by " + rails_[part.rail]->name);
  }
  return true;
}

UcxRequest NetworkRails::take_last(RailedMessage& railed) noexcept {
  const UcxRequest request = railed.parts.back().request;
  railed.parts.pop_back();
  --open_;
  if (railed.on_gpu) --open_on_gpus_;
  return request;
}

void NetworkRails::cancel(Message& message, HeldMemory& held) noexcept {
  while (!message.railed->parts.empty()) {
    const std::size_t rail = message.railed->parts.back().rail;
    const UcxRequest request = take_last(*message.railed);
    ucx().request_cancel(rails_[rail]->worker, request);
    ++unfinished_;
    held.add(message.peer, [this, request] {
      if (ucx().request_check_status(request) == UCS_INPROGRESS) return false;
      ucx().request_free(request);
      --unfinished_;
      return true;
    });
  }
}

void NetworkRails::progress_all() {
  const std::shared_ptr<void> gpu = open_on_gpus_ != 0 ? make_gpu_current(ordinal_) : nullptr;
  for (const auto& rail : rails_) ucx().worker_progress(rail->worker);
}

std::optional<std::pair<std::uint32_t, ucs_status_t>> NetworkRails::broken() const {
  for (const auto& [key, connection] : connections_)
    if (connection->problem != UCS_OK) return std::pair(connection->peer, connection->problem);
  return {};
}

void NetworkRails::close(Deadline deadline) noexcept {
  std::vector<UcxRequest> closing;
  for (const auto& [key, connection] : connections_) {
    const ucp_request_param_t parameters{};
    const UcxRequest request = ucx().ep_close_nbx(std::exchange(connection->endpoint, nullptr), &parameters);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (const UcxRequest request : closing) {
    while (ucx().request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) progress_all();
    if (ucx().request_check_status(request) == UCS_INPROGRESS) unclosed_ = true;
    ucx().request_free(request);
  }
}

}  // namespace waywiser
