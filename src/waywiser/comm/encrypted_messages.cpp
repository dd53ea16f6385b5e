#include "waywiser/comm/encrypted_messages.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

// To here a message is sent before its receiver has asked for it, and kept where it has not.
constexpr std::uint64_t longest_unasked = 64 << 10;
constexpr std::uint64_t one_record = 16 << 10;
constexpr Seconds stranger_patience = 5, connect_patience = 10, between_tries = 0.05;
constexpr std::size_t most_strangers = 64;
constexpr int most_accepted_at_once = 16;
constexpr int most_reads_at_once = 64;

}  // namespace

EncryptedMessages::EncryptedMessages(const std::string& host, const TlsKey& key, ucp_tag_t mask, bool by_kernel)
    : context_(key, by_kernel), listener_(listen_on({host, 0})), host_(host), mask_(mask) {}

EncryptedMessages::~EncryptedMessages() = default;

std::string EncryptedMessages::offer() const { return text(Endpoint{host_, port_of(listener_)}); }

void EncryptedMessages::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  me_ = me;
  peers_.resize(ranks.size());
  for (const Introduction& other : ranks)
    if (other.machine_id != ranks[me].machine_id) peers_[other.rank].endpoint = parse_endpoint(other.encrypted);
}

void EncryptedMessages::send(Message& message) {
  Peer& peer = peers_[message.peer];
  message.receiving = false;
  message.waiting = true;
  message.number = static_cast<std::uint32_t>(next_number_);
  const std::uint64_t number = next_number_++;
  const bool at_once = message.bytes <= longest_unasked;
  const Header header{at_once ? Kind::data : Kind::rts, me_, message.tag, message.bytes, number};
  if (!at_once) peer.announced[number] = &message;
  post(message.peer, header, at_once ? &message : nullptr);
}

void EncryptedMessages::post(std::uint32_t rank, const Header& header, Message* message) {
  Peer& peer = peers_[rank];
  if (peer.gone) return;  // broken() says so
  if (!peer.line) begin_connection(rank);
  peer.outgoing.push_back({header, message});
  write_out(rank);
}

void EncryptedMessages::begin_connection(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  peer.given_up_at = Deadline::in(connect_patience);
  peer.outgoing.push_back({{Kind::hello, me_, 0, 0, 0}});
  connect(rank);
}

void EncryptedMessages::connect(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  try {
    peer.line = std::make_unique<TlsConnection>(context_, begin_connecting(peer.endpoint), TlsSide::client);
  } catch (const Error& error) {
    break_off(rank, error.what());
  }
}

// Where strangers take all places, the peer may have dismissed this rank before it could prove who it is.
void EncryptedMessages::try_again(std::uint32_t rank, const Error& problem) {
  Peer& peer = peers_[rank];
  const bool dismissed = !peer.ready && problem.kind() == ErrorKind::io;
  if (!dismissed || peer.given_up_at.passed()) return break_off(rank, problem.what());
  if (!peer.next_try.passed()) return;
  peer.next_try = Deadline::in(between_tries);
  connect(rank);
}

// As far as it goes without waiting.
void EncryptedMessages::write_out(std::uint32_t rank) {
  Peer& peer = peers_[rank];
  if (!peer.line || peer.outgoing.empty()) return;
  try {
    if (!peer.ready) peer.ready = peer.line->handshake();
    while (peer.ready && !peer.outgoing.empty() && write_first(peer)) peer.outgoing.pop_front();
  } catch (const Error& error) {
    try_again(rank, error);
  }
}

// True: all of it has gone.
bool EncryptedMessages::write_first(Peer& peer) {
  Outgoing& first = peer.outgoing.front();
  const std::uint64_t bytes = first.message == nullptr ? 0 : first.message->bytes;
  while (first.sent < sizeof(Header) + bytes) {
    const std::size_t taken = write_some(peer, first, bytes);
    if (taken == 0) return false;
    first.sent += taken;
  }
  if (first.message != nullptr) first.message->waiting = false;
  return true;
}

// What fits into one record goes as one. It stays where it is until it has gone: where the kernel encrypts, OpenSSL
// comes back to the bytes that it was given first.
std::size_t EncryptedMessages::write_some(Peer& peer, Outgoing& first, std::uint64_t bytes) {
  if (!std::exchange(first.begun, true)) {
    peer.record.assign(reinterpret_cast<const std::byte*>(&first.header),
                       reinterpret_cast<const std::byte*>(&first.header + 1));
    if (bytes != 0 && bytes <= one_record - sizeof(Header))
      peer.record.insert(peer.record.end(), first.message->from, first.message->from + bytes);
  }
  if (first.sent < peer.record.size()) return peer.line->write(std::span(peer.record).subspan(first.sent));
  const std::uint64_t done = first.sent - sizeof(Header);
  return peer.line->write({first.message->from + done, bytes - done});
}

Message* EncryptedMessages::take_posted(Peer& peer, ucp_tag_t tag) {
  const auto found =
      std::ranges::find_if(peer.receives, [&](const Message* message) { return match(message->tag, tag); });
  if (found == peer.receives.end()) return nullptr;
  Message* message = *found;
  peer.receives.erase(found);
  return message;
}

void EncryptedMessages::receive(Message& message) {
  Peer& peer = peers_[message.peer];
  message.receiving = true;
  message.waiting = true;
  const auto early = std::ranges::find_if(
      peer.early, [&](const Early& one) { return one.wanted_by == nullptr && match(one.header.tag, message.tag); });
  if (early == peer.early.end())
    peer.receives.push_back(&message);
  else
    take_early(peer, early, message);
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

// Of unlike lengths nothing is asked for: whoever waits compares.
void EncryptedMessages::take(Message& message, const Header& rts) {
  message.info = {rts.tag, rts.bytes};
  if (rts.bytes != message.bytes) {
    message.waiting = false;
    return;
  }
  peers_[message.peer].expected[rts.number] = &message;
  post(message.peer, {Kind::cts, me_, 0, 0, rts.number}, nullptr);
}

void EncryptedMessages::complete(Message& message, const Header& header) noexcept {
  message.info = {header.tag, header.bytes};
  message.waiting = false;
}

void EncryptedMessages::progress() {
  for (std::uint32_t rank = 0; rank < peers_.size(); ++rank) write_out(rank);
  sockets_.assign(1, {listener_.number(), POLLIN, 0});
  for (const Incoming& from : lines_) sockets_.push_back({from.line->number(), POLLIN, 0});
  if (::poll(sockets_.data(), sockets_.size(), 0) <= 0) return;
  std::size_t i = 1;
  for (auto line = lines_.begin(); line != lines_.end(); ++i) {
    const auto from = line++;
    if (sockets_[i].revents == 0) continue;
    try {
      read_in(*from);
    } catch (const Error& error) {
      if (from->peer) break_off(*from->peer, error.what());
      lines_.erase(from);
    }
  }
  drop_late();
  if (sockets_.front().revents != 0) accept_new();
}

void EncryptedMessages::accept_new() {
  for (int i = 0; i < most_accepted_at_once; ++i) {
    Descriptor socket = accept_one(listener_);
    if (!socket.open()) return;
    const auto strangers = std::ranges::count_if(lines_, [](const Incoming& from) { return !from.peer; });
    if (static_cast<std::size_t>(strangers) >= most_strangers) continue;
    watch_the_line(socket);
    Incoming& from = lines_.emplace_back();
    from.line = std::make_unique<TlsConnection>(context_, std::move(socket), TlsSide::server);
    from.introduced_by = Deadline::in(stranger_patience);
  }
}

void EncryptedMessages::drop_late() {
  std::erase_if(lines_, [](const Incoming& from) { return !from.peer && from.introduced_by.passed(); });
}

void EncryptedMessages::read_in(Incoming& from) {
  if (!from.line->handshake()) return;
  for (int i = 0; i < most_reads_at_once; ++i)
    if (from.body_left != 0 ? !read_body(from) : !read_header(from)) return;
}

// False: nothing has come.
bool EncryptedMessages::read_header(Incoming& from) {
  const auto bytes = std::as_writable_bytes(std::span(&from.header, 1)).subspan(from.header_read);
  const std::size_t got = from.line->read(bytes);
  from.header_read += got;
  if (from.header_read == sizeof(Header)) {
    from.header_read = 0;
    hear(from);
  }
  return got != 0;
}

bool EncryptedMessages::read_body(Incoming& from) {
  std::array<std::byte, one_record> nowhere;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  std::span<std::byte> place = std::span(nowhere).first(std::min<std::uint64_t>(from.body_left, nowhere.size()));
  if (from.into != nullptr) place = {from.into, from.body_left};
  const std::size_t got = from.line->read(place);
  from.body_left -= got;
  if (from.into != nullptr) from.into += got;
  if (from.body_left == 0) finish_body(from);
  return got != 0;
}

void EncryptedMessages::hear(Incoming& from) {
  if (!from.peer) return hear_hello(from);
  Peer& peer = peers_[*from.peer];
  switch (from.header.kind) {
    case Kind::data: return hear_data(from, peer);
    case Kind::rts: return hear_rts(peer, from.header);
    case Kind::cts: return hear_cts(peer, from.header);
    case Kind::rest: return hear_rest(from, peer);
    default: throw Error(ErrorKind::io, "it says what is no message");
  }
}

void EncryptedMessages::hear_hello(Incoming& from) {
  const std::uint32_t rank = from.header.rank;
  const bool known =
      std::ranges::any_of(lines_, [rank](const Incoming& other) { return other.peer && *other.peer == rank; });
  if (from.header.kind != Kind::hello || !reaches(rank) || known)
    throw Error(ErrorKind::io, "it is no rank of another machine");
  from.peer = rank;
}

void EncryptedMessages::hear_data(Incoming& from, Peer& peer) {
  const Header& header = from.header;
  if (header.bytes > longest_unasked) throw Error(ErrorKind::io, "it sends more than it may before it is asked");
  from.body_left = header.bytes;
  from.message = take_posted(peer, header.tag);
  from.early = nullptr;
  if (from.message == nullptr) {
    from.early = &peer.early.emplace_back(Early{header});
    from.early->data.resize(header.bytes);
    from.into = from.early->data.data();
  } else {
    from.into = header.bytes == from.message->bytes ? from.message->into : nullptr;
  }
  if (header.bytes == 0) finish_body(from);
}

void EncryptedMessages::hear_rts(Peer& peer, const Header& header) {
  if (Message* message = take_posted(peer, header.tag))
    take(*message, header);
  else
    peer.early.push_back({header});
}

// One that has been given up is not sent.
void EncryptedMessages::hear_cts(Peer& peer, const Header& header) {
  const auto found = peer.announced.find(header.number);
  if (found == peer.announced.end()) return;
  Message* message = found->second;
  peer.announced.erase(found);
  post(message->peer, {Kind::rest, me_, message->tag, message->bytes, header.number}, message);
}

void EncryptedMessages::hear_rest(Incoming& from, Peer& peer) {
  from.body_left = from.header.bytes;
  from.early = nullptr;
  const auto found = peer.expected.find(from.header.number);
  from.message = found == peer.expected.end() ? nullptr : found->second;
  if (from.message != nullptr) peer.expected.erase(found);
  if (from.message != nullptr && from.message->bytes != from.header.bytes)
    throw Error(ErrorKind::io, "it sends another length than it has announced");
  from.into = from.message == nullptr ? nullptr : from.message->into;
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
  from.into = nullptr;
}

// A message of which a part has gone cannot be taken back: the connection ends, so that nobody takes the part for all.
void EncryptedMessages::cancel(Message& message) noexcept {
  if (!std::exchange(message.waiting, false)) return;
  Peer& peer = peers_[message.peer];
  const auto is_it = [&](const Message* one) { return one == &message; };
  std::erase_if(peer.receives, is_it);
  for (auto* list : {&peer.announced, &peer.expected})
    std::erase_if(*list, [&](const auto& entry) { return entry.second == &message; });
  for (Early& early : peer.early)
    if (early.wanted_by == &message) early.wanted_by = nullptr;
  for (Incoming& from : lines_)
    if (from.message == &message) {
      from.message = nullptr;
      from.into = nullptr;
    }
  const auto sending = std::ranges::find_if(peer.outgoing, is_it, &Outgoing::message);
  if (sending == peer.outgoing.end()) return;
  if (sending->begun)
    break_off(message.peer, "a message was given up on its way");
  else
    peer.outgoing.erase(sending);
}

// What waits for the peer is told by the group, which fails.
void EncryptedMessages::break_off(std::uint32_t rank, const std::string& why) noexcept {
  Peer& peer = peers_[rank];
  peer.line.reset();
  peer.outgoing.clear();
  peer.ready = false;
  peer.gone = true;
  if (!broken_) broken_.emplace(rank, why);
}

void EncryptedMessages::close(Deadline deadline) noexcept {
  const auto busy = [](const Peer& peer) { return peer.line && !peer.outgoing.empty(); };
  while (std::ranges::any_of(peers_, busy) && !deadline.passed()) progress();
  for (Peer& peer : peers_) peer.line.reset();
}

bool EncryptedMessages::encrypted_by_kernel(std::uint32_t peer) const {
  return peers_[peer].ready && peers_[peer].line->encrypted_by_kernel();
}

}  // namespace waywiser
