#include "waywiser/comm/session/engine.hpp"

#include <algorithm>

#include "waywiser/base/environment.hpp"

namespace waywiser {
namespace {

bool user_says_what_ucx_uses() {
  for (const char* name : {"UCX_TLS", "UCX_NET_DEVICES", "WAYWISER_UCX_TLS", "WAYWISER_UCX_NET_DEVICES"})
    if (environment(name)) return true;
  return false;
}

void fill_send(Message& message, std::uint32_t peer, Tag tag, const void* data, std::size_t bytes) {
  message.receiving = false;
  message.peer = peer;
  message.tag = tag;
  message.from = static_cast<const std::byte*>(data);
  message.bytes = bytes;
}

void fill_receive(Message& message, std::uint32_t peer, Tag tag, void* data, std::size_t bytes) {
  message.receiving = true;
  message.peer = peer;
  message.tag = tag;
  message.into = static_cast<std::byte*>(data);
  message.bytes = bytes;
}

}  // namespace

Engine::Engine(std::size_t ranks, const UcxContext::Settings& settings, NetworkPaths ways,
               std::unique_ptr<EncryptedMessages> encrypted, const Chooser* chooser)
    : ucx_(ranks, settings, held_),
      ways_(std::move(ways)),
      encrypted_(std::move(encrypted)),
      mailboxes_(ranks, matched_bits, host_message_sizes(chooser, ucx_.longest_copied()), held_) {
  if (!encrypted_ && !ways_.all().empty() && !user_says_what_ucx_uses())
    rails_ = std::make_unique<NetworkRails>(ways_, ranks, ucx_);
  carriers_.push_back(&mailboxes_);
  if (rails_) carriers_.push_back(rails_.get());
  if (encrypted_) carriers_.push_back(encrypted_.get());
  carriers_.push_back(&ucx_);
}

void Engine::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  for (Carrier* each : carriers_) each->introduce(ranks, me);
  peers_have_mailboxes_ = mailboxes_.reaches_any();
  const std::vector<PlanEnds> ends = ends_of(ways_, ranks, me);
  for (std::uint32_t peer = 0; peer < ranks.size(); ++peer) {
    Carrier* line = is_encrypted(peer) ? static_cast<Carrier*>(encrypted_.get()) : &ucx_;
    peers_.push_back({line, mailboxes_.reaches(peer) ? &mailboxes_ : line, ends[peer]});
  }
}

SentByMechanism Engine::sent() const {
  SentByMechanism all;
  for (const Carrier* each : carriers_) each->tell_sent(all);
  return all;
}

Carrier& Engine::carrier_of(const Message& message) {
  return **std::ranges::find_if(carriers_, [&](Carrier* each) { return each->takes(message); });
}

void Engine::send_sized(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes, Message& message,
                        Awaited awaited) {
  fill_send(message, peer, tag, data, bytes);
  carrier_of(message).send(message, awaited);
  if (mailboxes_.leaves_any_to_ucx()) mailboxes_.hand_over(ucx_);
}

void Engine::receive_sized(std::uint32_t peer, Tag tag, void* data, std::size_t bytes, Message& message) {
  fill_receive(message, peer, tag, data, bytes);
  carrier_of(message).receive(message);
  if (message.carrier == &ucx_ && message.is_open() && mailboxes_.reaches(peer)) ucx_.list(message);
}

void Engine::send(std::uint32_t peer, Tag tag, const void* data, std::size_t bytes, Message& message) {
  fill_send(message, peer, tag, data, bytes);
  peers_[peer].line->send(message, Awaited::later);
}

void Engine::receive(std::uint32_t peer, Tag tag, void* data, std::size_t bytes, Message& message) {
  fill_receive(message, peer, tag, data, bytes);
  peers_[peer].line->receive(message);
}

std::string Engine::why_no_way(std::size_t way, std::uint32_t peer, bool sends) const {
  return rails_ ? rails_->why_not(way, peer, sends) : "a UCX_ variable restricts UCX";
}

std::string Engine::way_to(std::uint32_t peer, std::size_t bytes) {
  if (mailboxes_.reaches(peer)) return std::string(mailboxes_.way_to(peer, bytes));
  if (is_encrypted(peer)) return "encrypted";
  const auto way = find_way(peer, host(0), host(0), bytes);
  return way && why_no_way(*way, peer, true).empty() ? label(ways_.all()[*way].path) : "ucx";
}

void Engine::send_by(std::size_t way, std::uint32_t peer, Tag tag, ConstRegion data, Message& message) {
  fill_send(message, peer, tag, data.data, data.bytes);
  rails_->send_by(way, data, message);
}

void Engine::receive_by(std::size_t way, std::uint32_t peer, Tag tag, Region into, Message& message) {
  fill_receive(message, peer, tag, into.data, into.bytes);
  rails_->receive_by(way, into, message);
}

void Engine::receive_headed(std::uint32_t peer, Tag tag, const MessageHead& head, void* data, std::size_t bytes,
                            Message& message) {
  fill_receive(message, peer, tag, data, bytes);
  if (rails_) return rails_->receive_headed(head, message);
  message.info = {bytes == head[1] ? head_tag(tag) : head[0], head[1]};
}

std::optional<std::string> Engine::wrong_length() {
  const auto why = [](const Message& wanted, const Received& came) {
    return unlike(came, wanted.tag, wanted.bytes, source_of(wanted.tag));
  };
  for (const Message* one = ucx_.first_listed(); one != nullptr; one = one->next)
    if (const auto came = mailboxes_.early(one->peer, one->tag)) return why(*one, *came);
  for (const Message* one : mailboxes_.awaited())
    if (const auto came = ucx_.probe(one->peer, one->tag, matched_bits)) return why(*one, *came);
  return {};
}

// UCX has the messages of peers that nothing else reaches, among them this rank itself, and asks for all of them at
// once.
std::optional<Received> Engine::probe(std::span<const int> peers, Tag tag, Tag mask) {
  const auto first_to = [this](int peer) { return peers_[static_cast<std::size_t>(peer)].first; };
  const std::size_t places = peers.size() + 1;  // the last is UCX
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t place = (first_probed_ + i) % places;
    std::optional<Received> found;
    if (place < peers.size()) {
      Carrier* first = first_to(peers[place]);
      if (first != &ucx_) found = first->probe(static_cast<std::uint32_t>(peers[place]), tag, mask);
    } else if (std::ranges::any_of(peers, [&](int peer) { return first_to(peer) == &ucx_; })) {
      found = ucx_.probe(static_cast<std::uint32_t>(peers.front()), tag, mask);
    }
    if (!found) continue;
    first_probed_ = place + 1;
    return found;
  }
  return {};
}

void Engine::progress_ucx() noexcept {
  if (rails_) rails_->progress();
  ucx_.turn();
}

std::optional<std::string> Engine::broken() const {
  for (const Carrier* each : carriers_)
    if (auto why = each->broken()) return why;
  return {};
}

void Engine::close(Deadline deadline) noexcept {
  for (Carrier* each : carriers_) each->close(deadline, [this] { progress(); });
}

}  // namespace waywiser
