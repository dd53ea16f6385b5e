#include "waywiser/comm/network/network_rails.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/tag.hpp"
#include "waywiser/device/current_gpu.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/topology/system_files.hpp"

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

NetworkRails::NetworkRails(const NetworkPaths& ways, std::size_t ranks, UcxMessages& ucx)
    : paths_(ways), ways_(ways.all()), ucx_(ucx) {
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
    const std::string missing = trial.status.good() ? trial.lacks(selection) : "";
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

void NetworkRails::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  ends_ = ends_of(paths_, ranks, me);
  for (const Introduction& other : ranks) {
    same_machine_.push_back(other.machine_id == ranks[me].machine_id);
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
    ucx_.check(rail.worker->connect(known, theirs_[peer].at(theirs), true),
               "connect to rank " + std::to_string(peer) + " by " + rail.name);
  return known;
}

// Shorter messages use UCX's default path: they cannot fill a rail.
std::optional<std::size_t> NetworkRails::way_of(const Message& message) {
  if (message.bytes < defaults::rails_from || same_machine_[message.peer]) return {};
  const bool sends = !message.receiving;
  const auto way = paths_.find(host(0), host(0), message.bytes, ends_[message.peer], sends);
  return way && !known_route(*way, message.peer, sends).rails.empty() ? way : std::nullopt;
}

NetworkRails::Request& NetworkRails::begin(std::size_t way, const Route& route, ConstRegion data, Message& message) {
  if (route.rails.empty()) throw Error(ErrorKind::unavailable, "no rails for " + label(ways_[way].path));
  if (data.place.is_gpu() && std::exchange(gpu_, data.place.index) != data.place.index)
    ordinal_ = cuda_ordinal_of(data.place.index);
  message.request = std::make_unique<Request>();
  message.carrier = this;
  message.state = Message::State::asked;
  Request& request = request_of(message);
  request.rails = &route.rails;
  request.bytes = data.bytes;
  request.on_gpu = data.place.is_gpu();
  return request;
}

// UCX accesses GPU memory through the thread's current GPU.
std::shared_ptr<void> NetworkRails::gpu_of(const Request& request) const {
  return request.on_gpu ? make_gpu_current(ordinal_) : nullptr;
}

void NetworkRails::check_begun(Request& request, UcxStatus status, std::uint32_t peer) {
  if (request.parts.is_open()) {
    ++open_;
    if (request.on_gpu) ++open_on_gpus_;
  }
  if (!status.good()) ucx_.check(status, "reach rank " + std::to_string(peer));
}

void NetworkRails::end(const Request& request) noexcept {
  --open_;
  if (request.on_gpu) --open_on_gpus_;
}

void NetworkRails::send_by(std::size_t way, ConstRegion data, Message& message) {
  Route& route = known_route(way, message.peer, true);
  Request& request = begin(way, route, data, message);
  connect(route, message.peer);
  const auto gpu = gpu_of(request);
  check_begun(request, request.parts.send(route.rails, ways_[way].percents, data, message.tag ^ ucx_.tag_key()),
              message.peer);
  sent_.add(data.bytes);
}

void NetworkRails::receive_by(std::size_t way, Region into, Message& message) {
  const Route& route = known_route(way, message.peer, false);
  Request& request = begin(way, route, into, message);
  const auto gpu = gpu_of(request);
  check_begun(request,
              request.parts.receive(route.rails, ways_[way].percents, into, message.tag ^ ucx_.tag_key(), matched_bits),
              message.peer);
}

void NetworkRails::send(Message& message, Awaited) {
  send_by(way_of(message).value(), {message.from, message.bytes, host(0)}, message);
  Request& request = request_of(message);
  request.headed = true;
  request.head = {message.tag, message.bytes};
  Message& head = request.head_message;
  head.peer = message.peer;
  head.tag = head_tag(message.tag);
  head.from = reinterpret_cast<const std::byte*>(request.head.data());
  head.bytes = sizeof request.head;
  ucx_.send(head, Awaited::later);
}

void NetworkRails::receive(Message& message) {
  receive_by(way_of(message).value(), {message.into, message.bytes, host(0)}, message);
  Request& request = request_of(message);
  request.headed = true;
  Message& head = request.head_message;
  head.receiving = true;
  head.peer = message.peer;
  head.tag = message.tag;
  head.into = reinterpret_cast<std::byte*>(request.head.data());
  head.bytes = sizeof request.head;
  ucx_.receive(head);
}

void NetworkRails::receive_headed(const MessageHead& head, Message& message) {
  message.info = {head[0], head[1]};
  if (message.bytes != head[1]) return;
  const auto way = way_of(message);
  if (!way) {
    message.info.tag = head_tag(message.tag);
    return;
  }
  receive_by(*way, {message.into, message.bytes, host(0)}, message);
  Request& request = request_of(message);
  request.headed = request.head_read = true;
  request.head = head;
}

bool NetworkRails::test(Message& message) {
  if (!test_head(message) || !test_parts(message)) return false;
  const Request& request = request_of(message);
  if (message.receiving && !request.headed) message.info = {message.tag, request.bytes};
  message.state = Message::State::complete;
  message.request.reset();
  return true;
}

// A message that arrives in place of the header is reported as it is.
bool NetworkRails::test_head(Message& message) {
  Request& request = request_of(message);
  if (!is_complete(request.head_message)) return false;
  if (!message.receiving || !request.headed || std::exchange(request.head_read, true)) return true;
  message.info = request.head_message.info;
  const bool by_rails = is_head(message.info.tag);
  if (by_rails) message.info = {request.head[0], request.head[1]};
  if (!by_rails || request.head[1] != request.bytes) cancel_parts(message);
  return true;
}

bool NetworkRails::test_parts(Message& message) {
  Request& request = request_of(message);
  if (!request.parts.is_open()) return true;
  const Tag said = request.headed ? request.head[0] : message.tag;
  const auto ended = [&](const RailParts::Ended& part) {
    if (!request.parts.is_open()) end(request);
    const bool is_other = message.receiving && (part.came != part.bytes || (part.tag ^ ucx_.tag_key()) != said);
    if (part.status.good() && !is_other) return;
    ucx_.fail((message.receiving ? "receive from rank " : "send to rank ") + std::to_string(message.peer) + " by " +
                  (*request.rails)[part.rail].name,
              part.status.good() ? "another message came" : part.status.text());
  };
  return request.parts.test(*request.rails, ended);
}

void NetworkRails::cancel_parts(Message& message) {
  Request& request = request_of(message);
  if (request.parts.is_open()) end(request);
  for (const RailParts::Part& part : request.parts.take()) {
    UcxWorker* worker = (*request.rails)[part.rail].worker;
    worker->cancel(part.request);
    if (worker->give_up(part.request)) continue;
    ucx_.held().add(message.peer, [worker, given_up = part.request] { return worker->is_over(given_up); });
  }
}

void NetworkRails::cancel(Message& message) noexcept {
  if (!message.is_open()) return;
  message.state = Message::State::complete;
  cancel_parts(message);
  Message& head = request_of(message).head_message;
  const std::shared_ptr<CarrierRequest> needed = std::move(message.request);  // has the head
  ucx_.give_up(head, needed);
}

void NetworkRails::progress_all() noexcept {
  const std::shared_ptr<void> gpu = open_on_gpus_ != 0 ? make_gpu_current(ordinal_) : nullptr;
  for (const auto& member : members_) member->worker.progress();
}

std::optional<std::string> NetworkRails::broken() const {
  for (const auto& member : members_)
    if (const UcxEndpoint* endpoint = member->worker.broken()) return why_broken(*endpoint);
  return {};
}

void NetworkRails::close(Deadline deadline, const std::function<void()>&) noexcept {
  for (const auto& member : members_)
    if (!member->worker.close(deadline, [this] { progress_all(); })) member->worker.leave();
}

}  // namespace waywiser
