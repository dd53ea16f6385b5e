#include "waywiser/heap/proxy/proxy_arrivals.hpp"

#include <algorithm>
#include <new>

#include "waywiser/base/error.hpp"
#include "waywiser/heap/device/host_heap_block.hpp"

namespace waywiser {

using one_sided::ProxyArrival, one_sided::ProxyMove, one_sided::ProxyRequest, one_sided::WordOp, one_sided::WordType,
    one_sided::proxy_piece, one_sided::proxy_slots;

namespace {

constexpr Seconds loading = 30;  // until the kernel of deliveries is loaded

bool puts(const ProxyRequest& request) { return request.move != ProxyMove::get && request.count != 0; }
bool gets(const ProxyRequest& request) { return request.move == ProxyMove::get && request.count != 0; }

}  // namespace

ProxyArrival& ProxyArrivals::Peer::arrival(std::uint64_t number) const {
  return reinterpret_cast<ProxyArrival*>(memory.region().data)[number % proxy_slots];
}

ProxyArrivals::ProxyArrivals(const ProxyMessages& messages, std::shared_ptr<Platform> platform, Region own,
                             const std::vector<int>& peers)
    : messages_(messages), platform_(std::move(platform)), memory_(own) {
  const Place place = own.place;
  const Place near = place.is_gpu() ? platform_->nearest_host(place.index) : place;
  const Allocation kind = place.is_gpu() ? Allocation::pinned : Allocation::pageable;
  for (const int rank : peers) {
    Peer& peer = peers_.emplace_back();
    peer.rank = rank;
    peer.memory = platform_->allocate(near, proxy_slots * sizeof(ProxyArrival), kind);
    for (std::uint64_t i = 0; i < proxy_slots; ++i) new (&peer.arrival(i)) ProxyArrival;
  }
  if (peers.empty()) return;
  list_ = platform_->allocate(near, peers.size() * proxy_slots * sizeof(ProxyArrival*), kind);
  if (!place.is_gpu()) return;
  stream_ = platform_->open_stream(place);
  ended_ = platform_->create_event(place);
  // The first launch loads the kernel, for which CUDA may wait until all other kernels have ended:
  // too late once kernels wait for a delivery.
  launch({});
  stream_->synchronize(Deadline::in(loading));
}

bool ProxyArrivals::advance() {
  bool moved = false;
  for (Peer& peer : peers_)
    while (receive(peer)) moved = true;
  if (is_carried_out()) answer();
  if (!under_way_ && any_wait()) begin();
  return moved || under_way_;
}

// The slots of a ring are the most that one rank has under way.
bool ProxyArrivals::receive(Peer& peer) {
  ProxyArrival& arrival = peer.arrival(peer.received);
  ProxyRequest& request = arrival.request;
  if (peer.takes == Peer::Takes::nothing) {
    if (peer.received - peer.ended >= proxy_slots) return false;
    Answered& before = peer.answers[peer.received % proxy_slots];
    if (!messages_.is_sent(before.head) || !messages_.is_sent(before.piece)) return false;
    messages_.receive(peer.rank, ProxyLabel::request, &request, sizeof request, peer.head);
    peer.takes = Peer::Takes::head;
  }
  if (peer.takes == Peer::Takes::head) {
    if (!messages_.has_come(peer.rank, ProxyLabel::request, sizeof request, peer.head)) return false;
    if (const std::string why = why_not(request); !why.empty())
      messages_.session().fail(ErrorKind::corrupt, "rank " + std::to_string(peer.rank) + " asks for " + why);
    peer.takes = Peer::Takes::piece;
    if (puts(request)) messages_.receive(peer.rank, ProxyLabel::piece, arrival.piece, request.bytes(), peer.piece);
  }
  if (puts(request) && !messages_.has_come(peer.rank, ProxyLabel::piece, request.bytes(), peer.piece)) return false;
  peer.takes = Peer::Takes::nothing;
  ++peer.received;
  return true;
}

std::string ProxyArrivals::why_not(const ProxyRequest& request) const {
  if (request.move > ProxyMove::packets || request.op > WordOp::read || request.type > WordType::float64)
    return "an access that does not exist";
  if (request.element == 0 || request.element > proxy_piece || request.count > proxy_piece / request.element)
    return "more bytes than are carried at once";
  const bool packets = request.move == ProxyMove::packets;
  const Bytes last = packets ? sizeof(block::LlPacket) : request.element;
  const std::uint64_t steps = packets ? one_sided::packets_of(request.count) : request.count;
  const Bytes apart = packets ? sizeof(block::LlPacket) : request.apart;
  if (packets && (request.element != 1 || request.offset % sizeof(block::LlPacket) != 0))
    return "packets at an offset of " + std::to_string(request.offset);
  if (apart > memory_.bytes || request.offset > memory_.bytes ||
      (steps != 0 && (steps - 1) * apart + last > memory_.bytes - request.offset))
    return "memory at offset " + std::to_string(request.offset) + ", outside";
  const Bytes size = request.type == WordType::bits32 || request.type == WordType::float32 ? 4 : 8;
  if (request.op != WordOp::none &&
      (request.word % size != 0 || request.word > memory_.bytes || size > memory_.bytes - request.word))
    return "a word at offset " + std::to_string(request.word);
  return {};
}

bool ProxyArrivals::any_wait() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.begun != peer.received; });
}

void ProxyArrivals::begin() {
  auto** list = reinterpret_cast<ProxyArrival**>(list_.region().data);
  one_sided::Delivery delivery;
  const auto reach = [this](Region region) { return stream_ ? stream_->reach(region) : region.data; };
  delivery.memory = reach(memory_);
  for (Peer& peer : peers_) {
    auto* first = reinterpret_cast<ProxyArrival*>(reach(peer.memory.region()));
    for (; peer.begun != peer.received; ++peer.begun) list[delivery.count++] = first + peer.begun % proxy_slots;
  }
  under_way_ = true;
  delivery.arrivals = reinterpret_cast<ProxyArrival* const*>(reach(list_.region()));
  launch(delivery);
}

void ProxyArrivals::launch(const one_sided::Delivery& delivery) {
  const auto body = [delivery] {
    one_sided::HostHeapBlock gpu;
    one_sided::deliver(gpu, delivery);
  };
  if (!stream_) return body();
  stream_->launch({1, 1, [body](const ThreadContext&) { body(); }, one_sided::cuda_launcher(delivery)});
  stream_->record(*ended_);
}

bool ProxyArrivals::is_carried_out() const { return under_way_ && (!stream_ || ended_->done()); }

// What reads is answered, and the last of a rank: for all before.
void ProxyArrivals::answer() {
  for (Peer& peer : peers_)
    for (; peer.ended != peer.begun; ++peer.ended)
      if (peer.arrival(peer.ended).request.answered != 0 || peer.ended + 1 == peer.begun) answer(peer, peer.ended);
  under_way_ = false;
}

void ProxyArrivals::answer(Peer& peer, std::uint64_t number) {
  const ProxyArrival& arrival = peer.arrival(number);
  Answered& answered = peer.answers[number % proxy_slots];
  answered.answer = {arrival.request.number, arrival.result};
  messages_.send(peer.rank, ProxyLabel::answer, &answered.answer, sizeof answered.answer, answered.head);
  if (gets(arrival.request))
    messages_.send(peer.rank, ProxyLabel::answer_piece, arrival.piece, arrival.request.bytes(), answered.piece);
}

void ProxyArrivals::settle(Seconds patience) noexcept {
  if (stream_ && under_way_) try {
      stream_->synchronize(Deadline::in(patience));
    } catch (const Error&) {  // the heap has failed
    }
}

void ProxyArrivals::cancel() noexcept {
  for (Peer& peer : peers_) {
    messages_.cancel(peer.head);
    messages_.cancel(peer.piece);
    for (Answered& answered : peer.answers) {
      messages_.cancel(answered.head);
      messages_.cancel(answered.piece);
    }
  }
}

}  // namespace waywiser
