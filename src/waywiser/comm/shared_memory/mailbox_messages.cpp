#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/fault_point.hpp"

namespace waywiser {
namespace {

// After so many turns unawaited messages are read too, so that their sender gets room.
constexpr unsigned turns_of_unawaited = 64;

void check_length(const LaneMessage& message) {
  if (message.is_offer ? message.bytes != sizeof(CopyOffer) : message.bytes > longest_short) [[unlikely]]
    throw Error(ErrorKind::io, "a mailbox holds a message of " + std::to_string(message.bytes) + " bytes");
}

CopyOffer offer_in(const LaneMessage& message) {
  CopyOffer offer;
  std::memcpy(&offer, message.data, sizeof offer);
  return offer;
}

// The length that the sender gave.
std::size_t length_of(const LaneMessage& message) {
  return message.is_offer ? static_cast<std::size_t>(offer_in(message).bytes) : message.bytes;
}

}  // namespace

void MailboxMessages::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  me_ = me;
  for (const Introduction& other : ranks) {
    if (other.rank == me || !LaneMailbox::agreed(ranks[me], other)) continue;
    Route& route = routes_[other.rank];
    route.to = mailbox_.open(other, me);
    route.from = mailbox_.from(other.rank);
    route.writer = LaneWriter(route.to);
    route.reader = LaneReader(route.from);
    route.process = process_to_copy(other.process);
    route.is_here = other.process == ranks[me].process;
    if (mailbox_use() == MailboxUse::only_short) route.reads.lose();
    peers_.push_back(other.rank);
  }
}

void MailboxMessages::tell_halted() noexcept {
  for (const std::uint32_t peer : peers_)
    if (reaches(peer)) routes_[peer].to->halted.store(1, std::memory_order_release);
}

bool MailboxMessages::takes(const Message& message) {
  return reaches(message.peer) &&
         (message.bytes <= sizes_.lane || message.bytes > longest_by_ucx_alone || !is_of_collective(message.tag));
}

void MailboxMessages::send(Message& message, Awaited) {
  Route& route = routes_[message.peer];
  message.carrier = this;
  message.state = Message::State::waits;
  if (route.sends.first == nullptr && send_now(route, message)) return;
  route.sends.append(message);
  ++awaited_;
}

bool MailboxMessages::send_now(Route& route, Message& message) {
  fault_point(message.bytes > sizes_.lane ? ProtocolStep::rts : ProtocolStep::lane_write);
  if (message.bytes > sizes_.lane) return offer(route, message);
  if (!route.writer.write(message.tag, message.from, message.bytes)) return false;
  by_ring_.add(message.bytes);
  message.state = Message::State::complete;
  return true;
}

// A message that is longer than its receive says its length: the caller compares.
std::optional<Received> MailboxMessages::receive_at_once(std::uint32_t peer, Tag tag, std::byte* into,
                                                         std::size_t bytes) {
  Route& route = routes_[peer];
  if (!route.early.empty()) {
    const auto found = find_early(route, tag);
    if (found == route.early.end()) return {};
    const Received info{found->tag, length_of(found->message())};
    if (!found->is_offer && info.bytes != 0) std::memcpy(into, found->data.data(), std::min(info.bytes, bytes));
    route.early.erase(found);
    return info;
  }
  const LaneMessage next = route.receives.first == nullptr ? route.reader.peek() : LaneMessage();
  if (!next || !match(next.tag, tag)) return {};
  check_length(next);
  Received info{next.tag, next.bytes};
  if (next.is_offer) [[unlikely]]
    info.bytes = length_of(next);
  else
    copy_short(into, next.data, std::min(next.bytes, bytes));
  route.reader.pop();
  return info;
}

std::optional<Received> MailboxMessages::probe(std::uint32_t peer, Tag tag, Tag mask) {
  Route& route = routes_[peer];
  poll(route, true);
  for (const Early& early : route.early)
    if (((early.tag ^ tag) & mask) == 0) return Received{early.tag, length_of(early.message())};
  return {};
}

void MailboxMessages::receive(Message& message) {
  Route& route = routes_[message.peer];
  message.carrier = this;
  message.state = Message::State::waits;
  if (message.bytes <= sizes_.lane) {
    if (const auto info = receive_at_once(message.peer, message.tag, message.into, message.bytes)) {
      message.info = *info;
      message.state = Message::State::complete;
      return;
    }
  } else {
    const auto found = find_early(route, message.tag);
    if (found != route.early.end()) {
      const Early came = std::move(*found);
      route.early.erase(found);
      ++awaited_;
      return complete(route, message, came.message());
    }
  }
  ++awaited_;
  route.receives.append(message);
  poll(route, false);
}

// Completes an awaited message. If the lengths differ, nothing is copied.
void MailboxMessages::complete(Route& route, Message& message, const LaneMessage& came) {
  message.info = {came.tag, length_of(came)};
  if (came.is_offer && message.info.bytes == message.bytes) return open(route, message, came.tag, offer_in(came));
  if (!came.is_offer) copy_short(message.into, came.data, std::min(came.bytes, message.bytes));
  message.state = Message::State::complete;
  --awaited_;
}

void MailboxMessages::deliver(Route& route, const LaneMessage& next) {
  check_length(next);
  Message* one = route.receives.first;
  while (one != nullptr && !match(one->tag, next.tag)) one = one->next;
  if (one == nullptr) {
    route.early.push_back({next.tag, {next.data, next.data + next.bytes}, next.is_offer});
    return;
  }
  route.receives.remove(*one);
  complete(route, *one, next);
}

// Until nothing more is awaited: what then comes next stays where it is, and need not be kept elsewhere. Or `all`.
bool MailboxMessages::poll(Route& route, bool all) {
  bool moved = false;
  while (all || route.receives.first != nullptr) {
    const LaneMessage next = route.reader.peek();
    if (!next) break;
    deliver(route, next);
    route.reader.pop();
    moved = true;
  }
  return moved;
}

bool MailboxMessages::send_again(Route& route) {
  bool moved = false;
  while (Message* first = route.sends.first) {
    route.sends.remove(*first);
    if (!send_now(route, *first)) {
      route.sends.prepend(*first);
      break;
    }
    --awaited_;
    moved = true;
  }
  return moved;
}

bool MailboxMessages::progress() {
  bool moved = false;
  const bool all = ++turns_ % turns_of_unawaited == 0;
  for (const std::uint32_t peer : peers_) {
    Route& route = routes_[peer];
    if (poll(route, all)) moved = true;
    if (route.incoming.first != nullptr && copy_incoming(route)) moved = true;
    if (route.offered.first != nullptr && copy_offered(route)) moved = true;
    if (route.sends.first != nullptr && send_again(route)) moved = true;
  }
  return moved;
}

// A message left to UCX may have chunks that the sender had already begun to copy.
void MailboxMessages::cancel(Message& message) noexcept {
  if (!message.is_open()) return;
  Route& route = routes_[message.peer];
  const std::unique_ptr<CarrierRequest> request = std::move(message.request);
  message.state = Message::State::complete;
  auto* copy = static_cast<Copy*>(request.get());
  switch (copy == nullptr ? Copy::Stage::queued : copy->stage) {
    case Copy::Stage::queued:
      if ((message.receiving ? route.receives : route.sends).remove(message)) --awaited_;
      return;
    case Copy::Stage::copied:
      if ((message.receiving ? route.incoming : route.offered).remove(message)) --awaited_;
      break;
    case Copy::Stage::left_to_ucx: left_to_ucx_.remove(message); break;
    case Copy::Stage::by_ucx:
      if (copy->rest.is_open()) copy->rest.carrier->cancel(copy->rest);
  }
  if (copy->end.copy == nullptr) return;
  copy->end.stop();
  held_.add(message.peer, [end = copy->end, by_sender = message.receiving] { return !end.is_held(by_sender); });
}

std::vector<const Message*> MailboxMessages::awaited() const {
  std::vector<const Message*> all;
  for (const std::uint32_t peer : peers_)
    for (const Message* one = routes_[peer].receives.first; one != nullptr; one = one->next) all.push_back(one);
  return all;
}

std::optional<Received> MailboxMessages::early(std::uint32_t peer, Tag tag) const noexcept {
  if (!reaches(peer)) return {};
  const Route& route = routes_[peer];
  const auto found = find_early(route, tag);
  if (found == route.early.end()) return {};
  return Received{found->tag, length_of(found->message())};
}

}  // namespace waywiser
