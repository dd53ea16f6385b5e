#include "waywiser/transport/ucx/ucx_connection.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/transport/peer_channel.hpp"
#include "waywiser/transport/split/split.hpp"

namespace waywiser {
namespace {

constexpr ucp_tag_t tag = 0x77617977;
constexpr Seconds longest_close = 0.5;
constexpr unsigned turns_between_looks = 1024;

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

UcxConnection::UcxConnection(const Path& path, PeerChannel& peer, std::string name)
    : name_(std::move(name)), peer_(peer) {
  const std::vector<UcxSelection> selections = ucx_rails(path);
  between_machines_ = selections.front().between_machines;
  for (const UcxSelection& selection : selections) {
    Member& member = *members_.emplace_back(std::make_unique<Member>(selection));
    rails_.push_back({&member.worker, &member.endpoint, selection.name});
  }
  percents_ = selections.size() == 1 ? std::vector<int>{100} : split_percents(path, selections.size());
}

void UcxConnection::connect(Deadline deadline) {
  for (const auto& member : members_) connect(*member, deadline);
}

// Connections that UCX watches are closed only where nothing can go wrong with it; otherwise it is left as it is.
UcxConnection::~UcxConnection() {
  const bool gone = peer_.peer_ended();
  const bool all_sent = std::ranges::none_of(sends_.pending, &RailParts::is_open);
  const bool all_over = all_sent && std::ranges::none_of(receives_.pending, &RailParts::is_open);
  const bool is_left = between_machines_ && (broken_ || !all_over || gone);
  for (auto* list : {&sends_, &receives_})
    for (RailParts& parts : list->pending)
      for (const RailParts::Part& part : parts.take()) {
        if (list == &receives_) rails_[part.rail].worker->cancel(part.request);
        if (!is_left) ucx_library().functions().request_free(part.request);
      }
  if (is_left || !all_sent || gone) return;
  for (const UcxRail& rail : rails_) rail.worker->close(Deadline::in(longest_close), [this] { progress(); });
}

// Both sides tell their addresses, or why they have none.
void UcxConnection::connect(Member& member, Deadline deadline) {
  const Json theirs = peer_.exchange(address_message(member.worker.address()), deadline);
  check_ucx(member.worker.connect(member.endpoint, address_in(theirs), between_machines_),
            "connect to the peer process");
  const auto used = member.worker.transports(member.endpoint);
  const auto carries = [&](const std::string& transport) {
    return transport.starts_with(crosses_by(member.selection));
  };
  if (!used.empty() && std::ranges::none_of(used, carries))
    throw Error(ErrorKind::unavailable, name_ + ": " + ucx_library().text() + " does not use " +
                                            crosses_by(member.selection) + " between these processes");
}

void UcxConnection::progress() {
  for (const UcxRail& rail : rails_) rail.worker->progress();
}

void UcxConnection::send(ConstRegion source) {
  ++sends_.begun;
  check_ucx(sends_.pending.emplace_back().send(rails_, percents_, source, tag), "send");
  if (!sends_.pending.front().is_open()) sends_.pending.pop_front();
}

void UcxConnection::receive(Region destination) {
  ++receives_.begun;
  check_ucx(receives_.pending.emplace_back().receive(rails_, percents_, destination, tag), "receive");
}

void UcxConnection::check(const RailParts::Ended& part, bool receiving) {
  broken_ = broken_ || !part.status.good();
  if (!part.status.good())
    check_ucx(part.status,
              std::string(receiving ? "receive " : "send ") + std::to_string(part.bytes) + " bytes on " + name_);
  if (receiving && part.came != part.bytes)
    throw Error(ErrorKind::corrupt, name_ + ": accepted " + std::to_string(part.bytes) + " bytes, but " +
                                        std::to_string(part.came) + " were put");
}

// False: it is still under way.
bool UcxConnection::complete_first(Messages& list) {
  RailParts& first = list.pending.front();
  const bool receiving = first.is_receiving();
  const bool complete = first.test(rails_, [&](const RailParts::Ended& part) { check(part, receiving); });
  if (complete) list.pending.pop_front();
  return complete;
}

std::uint64_t UcxConnection::done(Messages& list) {
  progress();
  while (!list.pending.empty() && complete_first(list)) {
  }
  return list.begun - list.pending.size();
}

void UcxConnection::finish(Messages& list, Deadline deadline) {
  for (unsigned turn = 1; !list.pending.empty(); ++turn) {
    if (complete_first(list)) continue;
    progress();
    if (turn % turns_between_looks == 0) look(deadline);
  }
}

void UcxConnection::finish(Deadline deadline) {
  progress();
  finish(receives_, deadline);
  finish(sends_, deadline);
}

void UcxConnection::flush(Deadline deadline) {
  Messages flushes;
  check_ucx(flushes.pending.emplace_back().flush(rails_), "flush");
  finish(flushes, deadline);
}

void UcxConnection::look(Deadline deadline) const { peer_.look(name_, deadline); }

}  // namespace waywiser
