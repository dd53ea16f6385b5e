#include <utility>

#include "waywiser/comm/message/tag.hpp"
#include "waywiser/comm/session/engine.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {

std::optional<std::size_t> Engine::way_of_long(std::uint32_t peer, std::size_t bytes, bool sends) {
  // Shorter messages use UCX's default path: they cannot fill a rail.
  if (!rails_ || bytes < defaults::rails_from || peers_[peer].same_machine) return {};
  const auto way = ways_.find(host(0), host(0), bytes, peers_[peer].ends, sends);
  return way && rails_->reach(*way, peer, sends) ? way : std::nullopt;
}

std::string Engine::why_no_way(std::size_t way, std::uint32_t peer, bool sends) const {
  return rails_ ? rails_->why_not(way, peer, sends) : "a UCX_ variable restricts UCX";
}

void Engine::send_by(std::size_t way, std::uint32_t peer, ucp_tag_t tag, ConstRegion data, Message& message) {
  message.railed = std::make_unique<RailedMessage>();
  rails_->send(way, peer, tag, data, message);
}

void Engine::receive_by(std::size_t way, std::uint32_t peer, ucp_tag_t tag, Region into, Message& message) {
  message.railed = std::make_unique<RailedMessage>();
  message.tag = tag;
  rails_->receive(way, peer, tag, into, message);
}

// If the length differs, or this end has no such way, nothing is received: the caller compares.
void Engine::receive_headed(std::uint32_t peer, ucp_tag_t tag, const MessageHead& head, void* data, std::size_t bytes,
                            Message& message) {
  message.receiving = true;
  message.info = {head[0], head[1]};
  if (bytes != head[1]) return;
  const auto way = way_of_long(peer, bytes, false);
  if (!way) {
    message.info.sender_tag = head_tag(tag);
    return;
  }
  receive_by(*way, peer, tag, {static_cast<std::byte*>(data), bytes, host(0)}, message);
  message.railed->headed = true;
  message.railed->head_read = true;
  message.railed->head = head;
}

// A message that arrives in place of the header is reported as it is.
bool Engine::test_railed(Message& message) {
  RailedMessage& railed = *message.railed;
  if (message.receiving && railed.headed && !railed.head_read) {
    railed.head_read = true;
    const bool by_rails = is_head(message.info.sender_tag);
    if (by_rails) message.info = {railed.head[0], railed.head[1]};
    if (!by_rails || railed.head[1] != railed.bytes) rails_->cancel(message, held_);
  }
  if (!rails_->test(message)) return false;
  if (message.receiving && !railed.headed) message.info = {message.tag, railed.bytes};
  message.railed.reset();
  return true;
}

}  // namespace waywiser
