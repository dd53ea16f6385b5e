#include "waywiser/comm/short_messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// Turns after which also what nobody awaits is taken, so that its sender has room.
constexpr unsigned turns_of_unawaited = 64;

void check_length(const LaneMessage& message) {
  if (message.bytes > longest_short)
    throw Error(ErrorKind::io, "a mailbox holds a message of " + std::to_string(message.bytes) + " bytes");
}

}  // namespace

void ShortMessages::Queue::append(Message& message) noexcept {
  message.next = nullptr;
  (first == nullptr ? first : last->next) = &message;
  last = &message;
}

bool ShortMessages::Queue::remove(const Message& message) noexcept {
  Message* before = nullptr;
  for (Message* one = first; one != nullptr; before = std::exchange(one, one->next)) {
    if (one != &message) continue;
    (before == nullptr ? first : before->next) = one->next;
    if (last == one) last = before;
    return true;
  }
  return false;
}

bool ShortMessages::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  for (const Introduction& other : ranks) {
    if (other.rank == me || !LaneMailbox::agreed(ranks[me], other)) continue;
    routes_[other.rank].writer = LaneWriter(mailbox_.open(other, me));
    routes_[other.rank].reader = LaneReader(mailbox_.from(other.rank));
    peers_.push_back(other.rank);
  }
  return !peers_.empty();
}

void ShortMessages::send(Message& message) {
  if (send_at_once(message.peer, message.tag, message.from, message.bytes)) return;
  message.waiting = true;
  routes_[message.peer].sends.append(message);
}

// A longer message than was asked for says how long it is: whoever asked compares.
std::optional<ucp_tag_recv_info_t> ShortMessages::receive_at_once(std::uint32_t peer, ucp_tag_t tag, std::byte* into,
                                                                  std::size_t bytes) {
  Route& route = routes_[peer];
  const auto fits = [&](ucp_tag_t other) { return ((other ^ tag) & mask_) == 0; };
  if (!route.early.empty()) {
    const auto found = std::ranges::find_if(route.early, fits, &Early::tag);
    if (found == route.early.end()) return {};
    const ucp_tag_recv_info_t info{found->tag, found->data.size()};
    if (info.length != 0) std::memcpy(into, found->data.data(), std::min(info.length, bytes));
    route.early.erase(found);
    return info;
  }
  const LaneMessage next = route.receives.first == nullptr ? route.reader.peek() : LaneMessage();
  if (!next || !fits(next.tag)) return {};
  check_length(next);
  copy_short(into, next.data, std::min(next.bytes, bytes));
  route.reader.pop();
  return ucp_tag_recv_info_t{next.tag, next.bytes};
}

void ShortMessages::receive(Message& message) {
  if (const auto info = receive_at_once(message.peer, message.tag, message.into, message.bytes)) {
    message.info = *info;
    message.waiting = false;
    return;
  }
  Route& route = routes_[message.peer];
  message.waiting = true;
  ++awaited_;
  route.receives.append(message);
  poll(route);
}

void ShortMessages::complete(Message& message, const LaneMessage& came) noexcept {
  copy_short(message.into, came.data, std::min(came.bytes, message.bytes));
  message.info = {came.tag, came.bytes};
  message.waiting = false;
}

void ShortMessages::deliver(Route& route, const LaneMessage& next) {
  check_length(next);
  Message* one = route.receives.first;
  while (one != nullptr && ((one->tag ^ next.tag) & mask_) != 0) one = one->next;
  if (one == nullptr) {
    route.early.push_back({next.tag, {next.data, next.data + next.bytes}});
    return;
  }
  route.receives.remove(*one);
  --awaited_;
  complete(*one, next);
}

bool ShortMessages::poll(Route& route) {
  bool moved = false;
  while (const LaneMessage next = route.reader.peek()) {
    deliver(route, next);
    route.reader.pop();
    moved = true;
  }
  return moved;
}

bool ShortMessages::send_again(Route& route) {
  bool moved = false;
  while (Message* first = route.sends.first) {
    if (!route.writer.write(first->tag, first->from, first->bytes)) break;
    route.sends.remove(*first);
    first->waiting = false;
    moved = true;
  }
  return moved;
}

bool ShortMessages::progress() {
  bool moved = false;
  const bool all = ++turns_ % turns_of_unawaited == 0;
  for (const std::uint32_t peer : peers_) {
    Route& route = routes_[peer];
    if ((all || route.receives.first != nullptr) && poll(route)) moved = true;
    if (route.sends.first != nullptr && send_again(route)) moved = true;
  }
  return moved;
}

void ShortMessages::cancel(Message& message) noexcept {
  if (!std::exchange(message.waiting, false)) return;
  Route& route = routes_[message.peer];
  if (message.receiving && route.receives.remove(message)) --awaited_;
  if (!message.receiving) route.sends.remove(message);
}

void ShortMessages::list(Message& longer) noexcept {
  longer.listed = true;
  longer_.append(longer);
}

void ShortMessages::unlist(Message& longer) noexcept {
  longer.listed = false;
  longer_.remove(longer);
}

std::vector<const Message*> ShortMessages::awaited() const {
  std::vector<const Message*> all;
  for (const std::uint32_t peer : peers_)
    for (const Message* one = routes_[peer].receives.first; one != nullptr; one = one->next) all.push_back(one);
  return all;
}

std::optional<std::pair<const Message*, ucp_tag_recv_info_t>> ShortMessages::too_short() const {
  for (const Message* one = longer_.first; one != nullptr; one = one->next)
    for (const Early& early : routes_[one->peer].early)
      if (((early.tag ^ one->tag) & mask_) == 0)
        return std::pair(one, ucp_tag_recv_info_t{early.tag, early.data.size()});
  return {};
}

}  // namespace waywiser
