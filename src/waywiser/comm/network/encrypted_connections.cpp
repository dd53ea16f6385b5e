#include <poll.h>

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/network/encrypted_messages.hpp"

namespace waywiser {
namespace {

constexpr Seconds introduction_patience = 5;
constexpr std::size_t most_unknown_lines = 64;
constexpr int most_new_lines_at_once = 16;
constexpr int most_reads_at_once = 64;

}  // namespace

void EncryptedMessages::progress() {
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) write_out(rank);
  sockets_.assign(1, {listener_.number(), POLLIN, 0});
  for (const Incoming& from : lines_) sockets_.push_back({from.line->number(), POLLIN, 0});
  const bool any = ::poll(sockets_.data(), sockets_.size(), 0) > 0;
  if (!any && std::ranges::none_of(lines_, &Incoming::has_more)) return;
  std::size_t i = 1;
  for (auto line = lines_.begin(); line != lines_.end(); ++i) {
    const auto from = line++;
    if (sockets_[i].revents == 0 && !from->has_more) continue;
    try {
      read_in(*from);
      if (from->ended) lines_.erase(from);
    } catch (const Error& error) {
      if (from->peer) break_off(*from->peer, error.what(), error.kind() == ErrorKind::invalid_input);
      lines_.erase(from);
    }
  }
  drop_late();
  if (sockets_.front().revents != 0) accept_new();
}

void EncryptedMessages::accept_new() {
  for (int i = 0; i < most_new_lines_at_once; ++i) {
    Descriptor socket = accept_one(listener_);
    if (!socket.open()) return;
    const auto strangers = std::ranges::count_if(lines_, [](const Incoming& from) { return !from.peer; });
    if (static_cast<std::size_t>(strangers) >= most_unknown_lines) continue;
    keep_alive(socket);
    Incoming& from = lines_.emplace_back();
    from.line = std::make_unique<TlsConnection>(context_, std::move(socket), TlsSide::server);
    from.introduced_by = Deadline::in(introduction_patience);
  }
}

void EncryptedMessages::drop_late() {
  std::erase_if(lines_,
                [](const Incoming& from) { return !from.peer && !from.succeeds && from.introduced_by.passed(); });
}

// The socket does not show the rest of a TLS record that was read in part.
void EncryptedMessages::read_in(Incoming& from) {
  from.has_more = false;
  if (!from.line->handshake()) return;
  for (int i = 0; i < most_reads_at_once; ++i) {
    if (from.succeeds && is_known(*from.succeeds)) return;
    if (from.succeeds) from.peer = std::exchange(from.succeeds, std::nullopt);
    if (!read_part(from)) return;
    if (from.ended) return;
  }
  from.has_more = true;
}

bool EncryptedMessages::is_known(std::uint32_t rank) const {
  return std::ranges::any_of(lines_, [rank](const Incoming& from) { return from.peer == rank; });
}

// False: nothing has arrived.
bool EncryptedMessages::read_part(Incoming& from) {
  const auto header = std::as_writable_bytes(std::span(&from.header, 1));
  const bool of_body = from.reader.body_left() != 0;
  if (from.reader.read(*from.line, header) == 0) return false;
  if (of_body) {
    if (from.reader.body_left() == 0) finish_body(from);
  } else if (from.reader.has_head(header)) {
    from.reader.begin_message();
    hear(from);
  }
  return true;
}

void EncryptedMessages::hear(Incoming& from) {
  if (!from.peer) return hear_hello(from);
  Peer& peer = peers_[*from.peer];
  switch (from.header.kind) {
    case Kind::data: return hear_data(from, peer);
    case Kind::rts: return hear_rts(peer, from.header);
    case Kind::cts: return hear_cts(peer, from.header);
    case Kind::rest: return hear_rest(from, peer);
    case Kind::renew: from.ended = true; return;
    default: throw Error(ErrorKind::invalid_input, "it sent bytes that are not a message");
  }
}

void EncryptedMessages::hear_hello(Incoming& from) {
  const std::uint32_t rank = from.header.rank;
  const bool succeeded = std::ranges::any_of(lines_, [rank](const Incoming& one) { return one.succeeds == rank; });
  if (from.header.kind != Kind::hello || !reaches(rank) || succeeded)
    throw Error(ErrorKind::io, "it is no rank of another machine");
  (is_known(rank) ? from.succeeds : from.peer) = rank;  // messages of the older connection come first
}

void EncryptedMessages::hear_data(Incoming& from, Peer& peer) {
  const Header& header = from.header;
  if (header.bytes > longest_unasked)
    throw Error(ErrorKind::invalid_input, "it sends more than it may before it is asked");
  from.message = take_posted(peer, header.tag);
  from.early = nullptr;
  if (from.message == nullptr) {
    from.early = &peer.early.emplace_back(Early{header});
    from.early->data.resize(header.bytes);
    from.reader.expect(header.bytes, from.early->data.data());
  } else {
    from.reader.expect(header.bytes, header.bytes == from.message->bytes ? from.message->into : nullptr);
  }
  if (header.bytes == 0) finish_body(from);
}

void EncryptedMessages::hear_rts(Peer& peer, const Header& header) {
  if (Message* message = take_posted(peer, header.tag))
    take(*message, header);
  else
    peer.early.push_back({header});
}

// A message that was given up is not sent.
void EncryptedMessages::hear_cts(Peer& peer, const Header& header) {
  const auto found = peer.rts_sent.find(header.number);
  if (found == peer.rts_sent.end()) return;
  Message* message = found->second;
  peer.rts_sent.erase(found);
  post(message->peer, {Kind::rest, me_, message->tag, message->bytes, header.number}, message);
}

void EncryptedMessages::hear_rest(Incoming& from, Peer& peer) {
  from.early = nullptr;
  const auto found = peer.expected.find(from.header.number);
  from.message = found == peer.expected.end() ? nullptr : found->second;
  if (from.message != nullptr) peer.expected.erase(found);
  if (from.message != nullptr && from.message->bytes != from.header.bytes)
    throw Error(ErrorKind::invalid_input, "it sends another length than it has announced");
  from.reader.expect(from.header.bytes, from.message == nullptr ? nullptr : from.message->into);
}

void EncryptedMessages::finish_body(Incoming& from) {
  if (Early* early = std::exchange(from.early, nullptr)) {
    early->whole = true;
    if (Message* wanted = std::exchange(early->wanted_by, nullptr)) {
      Peer& peer = peers_[*from.peer];
      take_early(peer, std::ranges::find_if(peer.early, [&](const Early& one) { return &one == early; }), *wanted);
    }
  }
  if (Message* message = std::exchange(from.message, nullptr)) complete(*message, from.header);
}

}  // namespace waywiser
