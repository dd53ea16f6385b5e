#include "waywiser/heap/proxy/proxy_requests.hpp"

#include <algorithm>
#include <atomic>

namespace waywiser {

using one_sided::ProxyMove, one_sided::ProxyRequest, one_sided::ProxySlot;

namespace {

std::uint64_t acquire(const std::uint64_t& word) {
  return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
void release(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

}  // namespace

ProxyRequests::ProxyRequests(const ProxyMessages& messages, one_sided::ProxyRing& ring, const std::vector<int>& peers)
    : messages_(messages), ring_(ring) {
  for (const int rank : peers) {
    Peer& peer = peers_.emplace_back();
    peer.rank = rank;
    messages_.receive(rank, ProxyLabel::answer, &peer.answer, sizeof peer.answer, peer.head);
  }
}

bool ProxyRequests::advance() {
  bool moved = send_new();
  for (Peer& peer : peers_)
    while (take_answer(peer)) moved = true;
  return finish() || moved || !are_complete();
}

ProxyRequests::Peer& ProxyRequests::peer_of(int rank) {
  const auto found = std::ranges::find(peers_, rank, &Peer::rank);
  if (found == peers_.end())
    messages_.session().fail(ErrorKind::corrupt, "a kernel has written into the ring of a proxy");
  return *found;
}

bool ProxyRequests::waits_for_others(const Peer& peer) const {
  return std::ranges::any_of(peers_, [&](const Peer& other) { return &other != &peer && !other.under_way.empty(); });
}

bool ProxyRequests::send_new() {
  const std::uint64_t first = next_;
  for (;; ++next_) {
    ProxySlot& slot = ring_.slot(next_);
    if (acquire(slot.asked) != next_ + 1) break;
    ProxyRequest& request = slot.request;
    Peer& peer = peer_of(request.rank);
    if (request.after_all != 0 && waits_for_others(peer)) break;
    request.number = next_ + 1;
    Sent& sent = this->sent(next_);
    sent.ticket = next_;
    sent.used = true;
    sent.answered = false;
    messages_.send(peer.rank, ProxyLabel::request, &request, sizeof request, sent.head);
    if (request.move != ProxyMove::get && request.count != 0)
      messages_.send(peer.rank, ProxyLabel::piece, ring_.piece(next_), request.bytes(), sent.piece);
    peer.under_way.push_back(next_);
  }
  return next_ != first;
}

bool ProxyRequests::take_answer(Peer& peer) {
  if (!peer.takes_piece) {
    if (!messages_.has_come(peer.rank, ProxyLabel::answer, sizeof peer.answer, peer.head)) return false;
    const std::uint64_t ticket = peer.answer.number - 1;
    if (!std::ranges::binary_search(peer.under_way, ticket))
      messages_.session().fail(ErrorKind::corrupt, "a proxy has answered what nobody has asked for");
    for (; peer.under_way.front() != ticket; peer.under_way.pop_front()) sent(peer.under_way.front()).answered = true;
    ProxySlot& slot = ring_.slot(ticket);
    slot.result = peer.answer.result;
    peer.takes_piece = slot.request.move == ProxyMove::get && slot.request.count != 0;
    if (peer.takes_piece) {
      messages_.receive(peer.rank, ProxyLabel::answer_piece, ring_.piece(ticket), slot.request.bytes(), peer.piece);
      return true;
    }
  } else {
    const ProxyRequest& request = ring_.slot(peer.under_way.front()).request;
    if (!messages_.has_come(peer.rank, ProxyLabel::answer_piece, request.bytes(), peer.piece)) return false;
    peer.takes_piece = false;
  }
  sent(peer.under_way.front()).answered = true;
  peer.under_way.pop_front();
  messages_.receive(peer.rank, ProxyLabel::answer, &peer.answer, sizeof peer.answer, peer.head);
  return true;
}

// The slots of what has been answered are free: at once, or when the kernel has taken what it got.
bool ProxyRequests::finish() {
  bool moved = false;
  for (Sent& sent : sent_) {
    if (!sent.used || !sent.answered || !messages_.is_sent(sent.head) || !messages_.is_sent(sent.piece)) continue;
    sent.used = false;
    moved = true;
    ProxySlot& slot = ring_.slot(sent.ticket);
    if (slot.request.answered != 0)
      release(slot.done, sent.ticket + 1);
    else
      release(slot.free_for, sent.ticket + one_sided::proxy_slots);
  }
  if (!moved) return false;
  while (completed_ < next_ && !(sent(completed_).used && sent(completed_).ticket == completed_)) ++completed_;
  release(ring_.completed, completed_);
  return true;
}

bool ProxyRequests::are_complete() const {
  return completed_ == next_ && acquire(ring_.slot(next_).asked) != next_ + 1;
}

std::string ProxyRequests::progress_text() const {
  return std::to_string(next_ - completed_) + " accesses of kernels have not been answered";
}

void ProxyRequests::cancel() noexcept {
  for (Peer& peer : peers_) {
    messages_.cancel(peer.head);
    messages_.cancel(peer.piece);
  }
  for (Sent& sent : sent_) {
    messages_.cancel(sent.head);
    messages_.cancel(sent.piece);
  }
}

}  // namespace waywiser
