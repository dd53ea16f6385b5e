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

void MailboxMessages::Queue::append(Message& message) noexcept {
  message.next = nullptr;
  (first == nullptr ? first : last->next) = &message;
  last = &message;
}

void MailboxMessages::Queue::prepend(Message& message) noexcept {
  message.next = std::exchange(first, &message);
  if (last == nullptr) last = &message;
}

bool MailboxMessages::Queue::remove(const Message& message) noexcept {
  Message* before = nullptr;
  for (Message* one = first; one != nullptr; before = std::exchange(one, one->next)) {
    if (one != &message) continue;
    (before == nullptr ? first : before->next) = one->next;
    if (last == one) last = before;
    return true;
  }
  return false;
}

bool MailboxMessages::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
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
  return !peers_.empty();
}

void MailboxMessages::tell_halted() noexcept {
  for (const std::uint32_t peer : peers_)
    if (reaches(peer)) routes_[peer].to->halted.store(1, std::memory_order_release);
}

void MailboxMessages::send(Message& message) {
  Route& route = routes_[message.peer];
  message.waiting = true;
  message.stage = Message::Stage::queued;
  if (route.sends.first != nullptr || !send_now(route, message)) route.sends.append(message);
}

bool MailboxMessages::send_now(Route& route, Message& message) {
  fault_point(message.bytes > longest_short ? ProtocolStep::rts : ProtocolStep::lane_write);
  if (message.bytes > longest_short) return offer(route, message);
  message.waiting = !route.writer.write(message.tag, message.from, message.bytes);
  return !message.waiting;
}

// A message that is longer than its receive says its length: the caller compares.
std::optional<ucp_tag_recv_info_t> MailboxMessages::receive_at_once(std::uint32_t peer, ucp_tag_t tag, std::byte* into,
                                                                    std::size_t bytes) {
  Route& route = routes_[peer];
  if (!route.early.empty()) {
    const auto found = find_early(route, tag);
    if (found == route.early.end()) return {};
    const ucp_tag_recv_info_t info{found->tag, length_of(found->message())};
    if (!found->is_offer && info.length != 0) std::memcpy(into, found->data.data(), std::min(info.length, bytes));
    route.early.erase(found);
    return info;
  }
  const LaneMessage next = route.receives.first == nullptr ? route.reader.peek() : LaneMessage();
  if (!next || !match(next.tag, tag)) return {};
  check_length(next);
  ucp_tag_recv_info_t info{next.tag, next.bytes};
  if (next.is_offer) [[unlikely]]
    info.length = length_of(next);
  else
    copy_short(into, next.data, std::min(next.bytes, bytes));
  route.reader.pop();
  return info;
}

std::optional<ucp_tag_recv_info_t> MailboxMessages::probe(std::uint32_t peer, ucp_tag_t tag, ucp_tag_t mask) {
  Route& route = routes_[peer];
  poll(route);
  for (const Early& early : route.early)
    if (((early.tag ^ tag) & mask) == 0) return ucp_tag_recv_info_t{early.tag, length_of(early.message())};
  return {};
}

void MailboxMessages::receive(Message& message) {
  Route& route = routes_[message.peer];
  message.waiting = true;
  message.stage = Message::Stage::queued;
  if (message.bytes <= longest_short) {
    if (const auto info = receive_at_once(message.peer, message.tag, message.into, message.bytes)) {
      message.info = *info;
      message.waiting = false;
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
  poll(route);
}

// Completes an awaited message. If the lengths differ, nothing is copied.
void MailboxMessages::complete(Route& route, Message& message, const LaneMessage& came) {
  message.info = {came.tag, length_of(came)};
  if (came.is_offer && message.info.length == message.bytes) return open(route, message, came.tag, offer_in(came));
  if (!came.is_offer) copy_short(message.into, came.data, std::min(came.bytes, message.bytes));
  message.waiting = false;
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

bool MailboxMessages::poll(Route& route) {
  bool moved = false;
  while (const LaneMessage next = route.reader.peek()) {
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
    moved = true;
  }
  return moved;
}

bool MailboxMessages::progress() {
  bool moved = false;
  const bool all = ++turns_ % turns_of_unawaited == 0;
  for (const std::uint32_t peer : peers_) {
    Route& route = routes_[peer];
    if ((all || route.receives.first != nullptr) && poll(route)) moved = true;
    if (route.incoming.first != nullptr && copy_incoming(route)) moved = true;
    if (route.offered.first != nullptr && copy_offered(route)) moved = true;
    if (route.sends.first != nullptr && send_again(route)) moved = true;
  }
  return moved;
}

// A message left to UCX may have chunks that the sender had already begun to copy.
void MailboxMessages::cancel(Message& message, HeldMemory& held) noexcept {
  const bool was_waiting = std::exchange(message.waiting, false);
  Route& route = routes_[message.peer];
  if (was_waiting) {
    switch (message.stage) {
      case Message::Stage::queued:
        if (message.receiving && route.receives.remove(message)) --awaited_;
        if (!message.receiving) route.sends.remove(message);
        return;
      case Message::Stage::copied:
        if ((message.receiving ? route.incoming : route.offered).remove(message)) --awaited_;
        break;
      case Message::Stage::left_to_ucx: left_to_ucx_.remove(message);
    }
  }
  if (message.end.copy == nullptr || (!was_waiting && message.request == nullptr)) return;
  message.end.stop();
  held.add(message.peer, [end = message.end, by_sender = message.receiving] { return !end.is_held(by_sender); });
}

void MailboxMessages::list(Message& message) noexcept {
  message.listed = true;
  listed_.append(message);
}

void MailboxMessages::unlist(Message& message) noexcept {
  message.listed = false;
  listed_.remove(message);
}

std::vector<const Message*> MailboxMessages::awaited() const {
  std::vector<const Message*> all;
  for (const std::uint32_t peer : peers_)
    for (const Message* one = routes_[peer].receives.first; one != nullptr; one = one->next) all.push_back(one);
  return all;
}

std::optional<std::pair<const Message*, ucp_tag_recv_info_t>> MailboxMessages::unlike_listed() const {
  for (const Message* one = listed_.first; one != nullptr; one = one->next) {
    const Route& route = routes_[one->peer];
    const auto found = find_early(route, one->tag);
    if (found != route.early.end()) return std::pair(one, ucp_tag_recv_info_t{found->tag, length_of(found->message())});
  }
  return {};
}

}  // namespace waywiser
