#include <utility>

#include "waywiser/comm/message/fault_point.hpp"
#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/comm/shared_memory/mailbox_messages.hpp"

namespace waywiser {

bool MailboxMessages::is_better_copied_twice(Route& route, std::size_t bytes) noexcept {
  return !route.is_here && sizes_.is_by_ucx(bytes, [&] { return route.writer.reader_is_near(); });
}

std::string_view MailboxMessages::way_to(std::uint32_t peer, std::size_t bytes) noexcept {
  if (bytes <= sizes_.lane) return "lane";
  Route& route = routes_[peer];
  return is_better_copied_twice(route, bytes) || !route.reads ? "ucx" : "copies";
}

std::uint32_t MailboxMessages::free_copy(const Route& route) noexcept {
  std::uint32_t one = 0;
  const auto is_free = [&] {
    return (route.copies_in_use >> one & 1u) == 0 &&
           route.to->copies[one].state.load(std::memory_order_acquire) == SharedCopy::unused;
  };
  while (one < most_shared_copies && !is_free()) ++one;
  return one;
}

MailboxMessages::Copy& MailboxMessages::copy_of(Message& message) {
  if (!message.request) message.request = std::make_unique<Copy>();
  return static_cast<Copy&>(*message.request);
}

void MailboxMessages::end(Message& message) noexcept {
  message.state = Message::State::complete;
  message.request.reset();
}

// False: the lane has no room.
bool MailboxMessages::offer(Route& route, Message& message) {
  Copy& offered = copy_of(message);
  offered.twice = is_better_copied_twice(route, message.bytes);
  const std::uint32_t one = offered.twice || !route.reads ? most_shared_copies : free_copy(route);
  offered.number = next_number_++;
  if (one < most_shared_copies) {
    SharedCopy& copy = route.to->copies[one];
    for (auto* count : {&copy.taken, &copy.copied}) count->store(0, std::memory_order_relaxed);
    copy.returned.store(0, std::memory_order_relaxed);
    copy.state.store(SharedCopy::offered, std::memory_order_relaxed);
    offered.end = {&copy, route.process, 0, message.bytes};
  }
  if (!route.writer.write_offer(message.tag,
                                {reinterpret_cast<std::uintptr_t>(message.from), message.bytes, one, offered.number})) {
    if (one < most_shared_copies)
      std::exchange(offered.end.copy, nullptr)->state.store(SharedCopy::unused, std::memory_order_relaxed);
    return false;
  }
  if (one == most_shared_copies) {
    leave_to_ucx(message);
    return true;
  }
  route.copies_in_use |= std::uint64_t{1} << one;
  offered.stage = Copy::Stage::copied;
  route.offered.append(message);
  ++awaited_;
  return true;
}

void MailboxMessages::leave_to_ucx(Message& message) {
  fault_point(ProtocolStep::rendezvous);
  copy_of(message).stage = Copy::Stage::left_to_ucx;
  left_to_ucx_.append(message);
}

void MailboxMessages::hand_over(Carrier& ucx) {
  while (Message* message = left_to_ucx_.first) {
    left_to_ucx_.remove(*message);
    Copy& copy = copy_of(*message);
    copy.stage = Copy::Stage::by_ucx;
    message->state = Message::State::asked;
    Message& rest = copy.rest;
    rest.receiving = message->receiving;
    rest.peer = message->peer;
    rest.tag = left_to_ucx_tag(static_cast<int>(message->receiving ? message->peer : me_), copy.number);
    rest.into = message->into;
    rest.from = message->from;
    rest.bytes = message->bytes;
    rest.receiving ? ucx.receive(rest) : ucx.send(rest, copy.twice ? Awaited::by_all : Awaited::later);
  }
}

bool MailboxMessages::test(Message& message) {
  Copy& copy = copy_of(message);
  if (!is_complete(copy.rest)) return false;
  message.info = {copy.came_with, copy.rest.info.bytes};
  end(message);
  return true;
}

void MailboxMessages::open(Route& route, Message& message, Tag tag, const CopyOffer& offer) {
  Copy& incoming = copy_of(message);
  incoming.number = offer.number;
  incoming.came_with = tag;
  if (offer.copy >= most_shared_copies) {
    --awaited_;
    return leave_to_ucx(message);
  }
  incoming.end = {&route.from->copies[offer.copy], route.process, offer.source, message.bytes};
  incoming.stage = Copy::Stage::copied;
  if (!reads_alone(route, message.bytes)) {
    if (incoming.end.open(message.into)) route.incoming.append(message);
    return;
  }
  const Turn turn = incoming.end.receive_alone(message.into);
  if (turn == Turn::nothing_to_do) return;
  --awaited_;
  turn == Turn::complete ? end(message) : leave_to_ucx(message);
}

// Two ranks are faster together only where one would read longer than it takes to tell the other. Where both have more
// to do than this message, each is faster alone, as long as its cache holds what it reads.
bool MailboxMessages::reads_alone(const Route& route, std::size_t bytes) noexcept {
  if (bytes <= defaults::read_alone) return true;
  const bool are_several = route.receives.first != nullptr || route.incoming.first != nullptr ||
                           route.offered.first != nullptr || !route.early.empty();
  return are_several && bytes <= defaults::read_alone_of_several;
}

// Two ranks share one message in halves; of several messages, and of those that go both ways, each takes whole ones.
std::uint32_t MailboxMessages::chunks_at_once(const MessageList& queue, const MessageList& other_way) noexcept {
  return queue.first == queue.last && other_way.first == nullptr ? 1 : 2;
}

// Advances one message. True: something moved.
bool MailboxMessages::copy_incoming(Route& route) {
  const std::uint32_t most = chunks_at_once(route.incoming, route.offered);
  for (Message* one = route.incoming.first; one != nullptr;) {
    Message& message = *std::exchange(one, one->next);
    const Turn turn = copy_of(message).end.receive(message.into, most);
    if (turn == Turn::nothing_to_do) continue;
    if (turn == Turn::copied) return true;
    route.incoming.remove(message);
    --awaited_;
    if (turn == Turn::complete)
      end(message);
    else
      leave_to_ucx(message);
    return true;
  }
  return false;
}

bool MailboxMessages::copy_offered(Route& route) {
  const std::uint32_t most = route.writes ? chunks_at_once(route.offered, route.incoming) : 0;
  for (Message* one = route.offered.first; one != nullptr;) {
    Message& message = *std::exchange(one, one->next);
    CopyEnd& mine = copy_of(message).end;
    const Turn turn = mine.send(message.from, most);
    if (turn == Turn::nothing_to_do) continue;
    if (turn == Turn::failed) route.writes.note(false);
    if (turn == Turn::copied || turn == Turn::failed) return true;
    route.offered.remove(message);
    --awaited_;
    const auto number = mine.copy - route.to->copies.data();
    route.copies_in_use &= ~(std::uint64_t{1} << number);
    route.reads.note(turn == Turn::complete);
    if (turn == Turn::complete) {
      by_copy_.add(message.bytes);
      end(message);
      continue;
    }
    std::exchange(mine.copy, nullptr)->state.store(SharedCopy::unused, std::memory_order_relaxed);
    leave_to_ucx(message);
    return true;
  }
  return false;
}

}  // namespace waywiser
