#include "waywiser/transport/ucx/ucx_line.hpp"

#include <sched.h>

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser {
namespace {

constexpr ucp_tag_t tag = 0x77617977;
constexpr Seconds connect_patience = 10;
constexpr unsigned turns_between_looks = 1024;

const UcxFunctions& ucx() { return ucx_library().functions(); }

Json address_message(const std::vector<std::byte>& address) {
  Json numbers = Json::array();
  for (const std::byte one : address) numbers.push_back(std::to_integer<unsigned>(one));
  return {{"ucx_address", std::move(numbers)}};
}

std::vector<std::byte> address_in(const Json& message) {
  std::vector<std::byte> bytes;
  for (const Json& value : require_array(message, "ucx_address", "message from the peer process")) {
    if (!value.is_number_unsigned() || value > 255)
      throw Error(ErrorKind::invalid_input, "message from the peer process: 'ucx_address' is no list of bytes");
    bytes.push_back(static_cast<std::byte>(value.get<std::uint8_t>()));
  }
  return bytes;
}

}  // namespace

UcxLine::UcxLine(const Path& path, PeerChannel& peer, std::string name) : name_(std::move(name)), peer_(peer) {
  const std::vector<UcxRoad> roads = ucx_rails(path);
  between_machines_ = roads.front().between_machines;
  for (const UcxRoad& road : roads) rails_.push_back(std::make_unique<Rail>(road));
  percents_ = roads.size() == 1 ? std::vector<int>{100} : split_percents(path, roads.size());
}

void UcxLine::connect() {
  for (const auto& rail : rails_) connect(*rail);
}

UcxLine::~UcxLine() {
  for (Pending& pending : receives_.pending) pending.rail->worker.cancel(pending.request);
  if (between_machines_ && (broken_ || !sends_.pending.empty() || !receives_.pending.empty() || peer_.peer_ended()))
    leave();
  else
    end();
}

// Both sides tell their addresses, or why they have none.
void UcxLine::connect(Rail& rail) {
  const Json theirs = peer_.exchange(address_message(rail.worker.address()), Deadline::in(connect_patience));
  rail.worker.connect(address_in(theirs), between_machines_);
  const auto used = rail.worker.transports();
  const auto carries = [&](const std::string& transport) { return transport.starts_with(crosses_by(rail.road)); };
  if (!used.empty() && std::ranges::none_of(used, carries))
    throw Error(ErrorKind::unavailable, name_ + ": " + ucx_library().text() + " does not use " + crosses_by(rail.road) +
                                            " between these processes");
}

void UcxLine::end() noexcept {
  if (!sends_.pending.empty() || peer_.peer_ended())
    for (const auto& rail : rails_) rail->worker.abandon();
  for (const auto* list : {&sends_, &receives_})
    for (const Pending& pending : list->pending) ucx().request_free(pending.request);
}

// UCX that watches connections cannot give them up.
void UcxLine::leave() noexcept {
  for (const auto& rail : rails_) {
    rail->worker.leave();
    rail->context.abandon();
  }
}

void UcxLine::progress() {
  for (const auto& rail : rails_) rail->worker.progress();
}

void UcxLine::remember(Messages& list, Rail& rail, UcxRequest request, Bytes bytes) {
  if (request != nullptr) list.pending.push_back({&rail, request, bytes, list.begun});
}

// Each rail's share of the bytes; the first rail carries even an empty message.
template <typename Post>
void UcxLine::post(Messages& list, Bytes bytes, Post post) {
  const std::vector<Bytes> shares = split_bytes(percents_, bytes);
  Bytes at = 0;
  for (std::size_t i = 0; i < rails_.size(); at += shares[i++])
    if (i == 0 || shares[i] != 0) remember(list, *rails_[i], post(rails_[i]->worker, at, shares[i]), shares[i]);
  ++list.begun;
}

void UcxLine::send(ConstRegion source) {
  post(sends_, source.bytes,
       [&](UcxWorker& worker, Bytes at, Bytes share) { return worker.send(source.slice(at, share), tag); });
}

void UcxLine::receive(Region destination) {
  post(receives_, destination.bytes,
       [&](UcxWorker& worker, Bytes at, Bytes share) { return worker.receive(destination.slice(at, share), tag); });
}

void UcxLine::check_length(const ucp_tag_recv_info_t& info, Bytes expected) const {
  if (info.length != expected)
    throw Error(ErrorKind::corrupt, name_ + ": accepted " + std::to_string(expected) + " bytes, but " +
                                        std::to_string(info.length) + " were put");
}

// False: it is still under way.
bool UcxLine::complete_first(Messages& list) {
  const Pending pending = list.pending.front();
  ucp_tag_recv_info_t info{};
  const ucs_status_t status = list.receiving ? ucx().tag_recv_request_test(pending.request, &info)
                                             : ucx().request_check_status(pending.request);
  if (status == UCS_INPROGRESS) return false;
  list.pending.pop_front();
  ucx().request_free(pending.request);
  broken_ = broken_ || status != UCS_OK;
  check_ucx(status,
            std::string(list.receiving ? "receive " : "send ") + std::to_string(pending.bytes) + " bytes on " + name_);
  if (list.receiving) check_length(info, pending.bytes);
  return true;
}

std::uint64_t UcxLine::done(Messages& list) {
  progress();
  while (!list.pending.empty() && complete_first(list)) {
  }
  return list.pending.empty() ? list.begun : list.pending.front().message;
}

void UcxLine::finish(Messages& list, Deadline deadline) {
  for (unsigned turn = 1; !list.pending.empty(); ++turn) {
    if (complete_first(list)) continue;
    progress();
    if (turn % turns_between_looks == 0) look(deadline);
  }
}

void UcxLine::finish(Deadline deadline) {
  progress();
  finish(receives_, deadline);
  finish(sends_, deadline);
}

void UcxLine::flush(Deadline deadline) {
  Messages flushes{false};
  for (const auto& rail : rails_) remember(flushes, *rail, rail->worker.flush(), 0);
  finish(flushes, deadline);
}

void UcxLine::look(Deadline deadline) const {
  if (peer_.peer_ended()) throw Error(ErrorKind::io, name_ + ": the peer process ended");
  if (deadline.passed()) throw Error(ErrorKind::timeout, name_ + ": the peer process does not answer");
  ::sched_yield();
}

}  // namespace waywiser
