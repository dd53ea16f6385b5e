#include "tests/explorer/network.hpp"

#include <algorithm>
#include <cstring>

namespace waywiser::explorer {

void Network::send(std::uint32_t from, std::uint32_t to, Tag tag, const void* data, std::size_t bytes,
                   Message& message) {
  message.receiving = false;
  message.peer = to;
  message.state = Message::State::asked;
  auto* read_only = static_cast<std::byte*>(const_cast<void*>(data));
  sends_.push_back({from, to, tag, 0, read_only, bytes, &message});
  course_.changed();
}

void Network::receive(std::uint32_t from, std::uint32_t to, Tag tag, Tag mask, void* data, std::size_t bytes,
                      Message& message) {
  message.receiving = true;
  message.peer = from;
  message.state = Message::State::asked;
  receives_.push_back({from, to, tag, mask, static_cast<std::byte*>(data), bytes, &message});
  course_.changed();
}

void Network::cancel(Message& message) noexcept {
  for (auto* all : {&sends_, &receives_})
    std::erase_if(*all, [&](const Under& one) { return one.message == &message; });
  std::erase(landed_, &message);
  message.state = Message::State::complete;
}

std::vector<Network::Pair> Network::pairs() const {
  std::vector<Pair> found;
  std::vector<bool> taken(receives_.size());
  for (std::size_t send = 0; send < sends_.size(); ++send)
    for (std::size_t receive = 0; receive < receives_.size(); ++receive) {
      const Under &one = sends_[send], &other = receives_[receive];
      const bool fit = one.from == other.from && one.to == other.to && ((one.tag ^ other.tag) & other.mask) == 0;
      if (taken[receive] || !fit) continue;
      taken[receive] = true;
      found.push_back({send, receive});
      break;
    }
  return found;
}

void Network::deliver(Pair pair) {
  const Under send = sends_[pair.send], receive = receives_[pair.receive];
  sends_.erase(sends_.begin() + static_cast<std::ptrdiff_t>(pair.send));
  receives_.erase(receives_.begin() + static_cast<std::ptrdiff_t>(pair.receive));
  const std::size_t bytes = std::min(send.bytes, receive.bytes);
  if (bytes != 0) std::memcpy(receive.data, send.data, bytes);
  receive.message->info = {send.tag, send.bytes};
  receive.message->state = Message::State::complete;
  landed_.push_back(send.message);
}

void Network::carry() {
  for (;;) {
    const std::vector<Pair> found = pairs();
    const std::size_t events = found.size() + landed_.size();
    if (events == 0) {
      course_.idle();
      continue;
    }
    const std::size_t next = course_.choose(static_cast<unsigned>(events), true);
    if (next < found.size()) {
      deliver(found[next]);
    } else {
      Message& over = *landed_[next - found.size()];
      landed_.erase(landed_.begin() + static_cast<std::ptrdiff_t>(next - found.size()));
      over.state = Message::State::complete;
    }
    course_.changed();
    course_.step();
  }
}

}  // namespace waywiser::explorer
