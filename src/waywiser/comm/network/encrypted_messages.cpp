#include "waywiser/comm/network/encrypted_messages.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds patience_with_peer = 10, between_tries = 0.05;

}  // namespace

EncryptedMessages::EncryptedMessages(const std::string& host, const TlsKey& key, Tag mask, const Options& options)
    : context_(key, options.by_kernel),
      listener_(listen_on({host, 0})),
      host_(host),
      mask_(mask),
      bytes_of_key_(options.bytes_of_key) {}

EncryptedMessages::~EncryptedMessages() = default;

std::string EncryptedMessages::offer() const { return text(Endpoint{host_, port_of(listener_)}); }

void EncryptedMessages::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  me_ = me;
  peers_.resize(ranks.size());
  for (const Introduction& other : ranks)
    if (other.machine_id != ranks[me].machine_id) peers_[other.rank].endpoint = parse_endpoint(other.encrypted);
}

void EncryptedMessages::send(Message& message, Awaited) {
  Peer& peer = peers_[message.peer];
  begin(message);
  sent_.add(message.bytes);
  const std::uint64_t number = next_number_++;
  const bool at_once = message.bytes <= longest_unasked;
  const Header header{at_once ? Kind::data : Kind::rts, me_, message.tag, message.bytes, number};
  if (!at_once) peer.rts_sent[number] = &message;
  post(message.peer, header, at_once ? &message : nullptr);
}

void EncryptedMessages::begin(Message& message) noexcept {
  message.carrier = this;
  message.state = Message::State::waits;
}

void EncryptedMessages::post(std::uint32_t rank, const Header& header, Message* message) {
  Peer& peer = peers_[rank];
  if (peer.gone) return;  // broken() reports it
  if (!peer.line) begin_connection(rank);
  peer.outgoing.push_back({header, message});
  write_out(rank);
}

void EncryptedMessages::begin_connection(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  peer.given_up_at = Deadline::in(patience_with_peer);
  peer.outgoing.push_front({{Kind::hello, me_, 0, 0, 0}});
  connect(rank);
}

void EncryptedMessages::connect(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  peer.writer.forget();
  try {
    peer.line = std::make_unique<TlsConnection>(context_, begin_connecting(peer.endpoint), TlsSide::client);
  } catch (const Error& error) {
    break_off(rank, error.what());
  }
}

// If strangers take all places, the peer may have dropped this rank before it could prove its identity.
void EncryptedMessages::try_again(std::uint32_t rank, const Error& problem) {
  Peer& peer = peers_[rank];
  const bool dismissed = !peer.ready && problem.kind() == ErrorKind::io;
  if (!dismissed || peer.given_up_at.passed())
    return break_off(rank, problem.what(), problem.kind() == ErrorKind::invalid_input);
  if (!peer.next_try.passed()) return;
  peer.next_try = Deadline::in(between_tries);
  connect(rank);
}

// Writes as much as possible without waiting.
void EncryptedMessages::write_out(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  if (!peer.line || peer.outgoing.empty()) return;
  try {
    if (!peer.ready) peer.ready = peer.line->handshake();
    while (peer.ready && !peer.outgoing.empty()) {
      if (!peer.writer.begun() && peer.line->written() > bytes_of_key_)
        peer.outgoing.push_front({{Kind::renew, me_, 0, 0, 0}});
      if (!write_first(peer)) return;
      const bool renews = peer.outgoing.front().header.kind == Kind::renew;
      peer.outgoing.pop_front();
      if (renews) succeed(rank);
    }
  } catch (const Error& error) {
    try_again(rank, error);
  }
}

// Replaces a connection whose last message is sent by one with new keys.
void EncryptedMessages::succeed(std::uint32_t rank) {
  peers_[rank].line.reset();
  peers_[rank].ready = false;
  begin_connection(rank);
}

// True: all bytes are sent.
bool EncryptedMessages::write_first(Peer& peer) {
  const Outgoing& first = peer.outgoing.front();
  std::span<const std::byte> body;
  if (first.message != nullptr) body = {first.message->from, first.message->bytes};
  if (!peer.writer.write(*peer.line, std::as_bytes(std::span(&first.header, 1)), body)) return false;
  if (first.message != nullptr) first.message->state = Message::State::complete;
  return true;
}

Message* EncryptedMessages::take_posted(Peer& peer, Tag tag) {
  const auto found =
      std::ranges::find_if(peer.receives, [&](const Message* message) { return match(message->tag, tag); });
  if (found == peer.receives.end()) return nullptr;
  Message* message = *found;
  peer.receives.erase(found);
  return message;
}

void EncryptedMessages::receive(Message& message) {
  Peer& peer = peers_[message.peer];
  begin(message);
  const auto early = std::ranges::find_if(
      peer.early, [&](const Early& one) { return one.wanted_by == nullptr && match(one.header.tag, message.tag); });
  if (early == peer.early.end())
    peer.receives.push_back(&message);
  else
    take_early(peer, early, message);
}

std::optional<Received> EncryptedMessages::probe(std::uint32_t peer, Tag tag, Tag mask) {
  for (const Early& one : peers_[peer].early)
    if (one.wanted_by == nullptr && ((one.header.tag ^ tag) & mask) == 0)
      return Received{one.header.tag, one.header.bytes};
  return {};
}

void EncryptedMessages::take_early(Peer& peer, std::list<Early>::iterator early, Message& message) {
  const Header header = early->header;
  if (header.kind == Kind::data && !early->whole) {
    early->wanted_by = &message;
    return;
  }
  if (header.kind == Kind::data && header.bytes != 0)
    std::memcpy(message.into, early->data.data(), std::min<std::uint64_t>(header.bytes, message.bytes));
  peer.early.erase(early);
  header.kind == Kind::data ? complete(message, header) : take(message, header);
}

// If the lengths differ, no CTS is sent: the caller that waits compares them.
void EncryptedMessages::take(Message& message, const Header& rts) {
  message.info = {rts.tag, rts.bytes};
  if (rts.bytes != message.bytes) {
    message.state = Message::State::complete;
    return;
  }
  peers_[message.peer].expected[rts.number] = &message;
  post(message.peer, {Kind::cts, me_, 0, 0, rts.number}, nullptr);
}

void EncryptedMessages::complete(Message& message, const Header& header) noexcept {
  message.info = {header.tag, header.bytes};
  message.state = Message::State::complete;
}

// A partly sent message cannot be withdrawn: the connection ends, so that the peer cannot take the part for the whole.
void EncryptedMessages::cancel(Message& message) noexcept {
  if (std::exchange(message.state, Message::State::complete) == Message::State::complete) return;
  Peer& peer = peers_[message.peer];
  const auto is_it = [&](const Message* one) { return one == &message; };
  std::erase_if(peer.receives, is_it);
  for (auto* list : {&peer.rts_sent, &peer.expected})
    std::erase_if(*list, [&](const auto& entry) { return entry.second == &message; });
  for (Early& early : peer.early)
    if (early.wanted_by == &message) early.wanted_by = nullptr;
  for (Incoming& from : lines_)
    if (from.message == &message) {
      from.message = nullptr;
      from.reader.discard();
    }
  const auto sending = std::ranges::find_if(peer.outgoing, is_it, &Outgoing::message);
  if (sending == peer.outgoing.end()) return;
  if (sending == peer.outgoing.begin() && peer.writer.begun())
    break_off(message.peer, "a message was given up on its way");
  else
    peer.outgoing.erase(sending);
}

// The group fails, and so reports the error to everything that waits for the peer.
void EncryptedMessages::break_off(std::uint32_t rank, const std::string& why, bool came_wrong) noexcept {
  Peer& peer = peers_[rank];
  peer.line.reset();
  peer.outgoing.clear();
  peer.writer.forget();
  peer.ready = false;
  peer.gone = true;
  if (broken_) return;
  broken_.emplace(rank, why);
  came_wrong_ = came_wrong;
}

std::optional<std::string> EncryptedMessages::broken() const {
  if (!broken_) return {};
  return "the encrypted connection to rank " + std::to_string(broken_->first) + " broke: " + broken_->second;
}

void EncryptedMessages::close(Deadline deadline, const std::function<void()>&) noexcept {
  const auto busy = [](const Peer& peer) { return peer.line && !peer.outgoing.empty(); };
  while (std::ranges::any_of(peers_, busy) && !deadline.passed()) progress();
  for (Peer& peer : peers_) peer.line.reset();
}

std::string EncryptedMessages::encrypted_by(std::uint32_t peer) const {
  if (!peers_[peer].ready) return {};
  return peers_[peer].line->encrypted_by_kernel() ? "kernel" : "openssl";
}

}  // namespace waywiser
