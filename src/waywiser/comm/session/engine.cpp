#include "waywiser/comm/session/engine.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/comm/message/tag.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/topology/system_files.hpp"

namespace waywiser {
namespace {

// The size that loses least, whichever cores the system gives to the two processes.
Bytes longest_copied() {
  unsigned major = 0, minor = 0, release = 0;
  ucx_library().functions().get_version(&major, &minor, &release);
  return std::pair(major, minor) >= std::pair(1u, 22u) ? defaults::ucx_copies : defaults::ucx_copies_before_1_22;
}

bool user_says_what_ucx_uses() {
  for (const char* name : {"UCX_TLS", "UCX_NET_DEVICES", "WAYWISER_UCX_TLS", "WAYWISER_UCX_NET_DEVICES"})
    if (environment(name)) return true;
  return false;
}

bool user_sets_rendezvous() {
  static const bool does = environment("UCX_RNDV_THRESH") || environment("WAYWISER_UCX_RNDV_THRESH");
  return does;
}

bool has_rdma_device() {
  static const bool has = !SystemFiles("").list("/sys/class/infiniband").empty();
  return has;
}

void set_mailed(Message& message, std::uint32_t peer, ucp_tag_t tag, std::size_t bytes) {
  message.receiving = false;
  message.peer = peer;
  message.tag = tag;
  message.bytes = bytes;
}

std::string rank_text(std::uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

Engine::Engine(std::size_t ranks, const UcxContext::Settings& settings, NetworkPaths ways,
               std::unique_ptr<EncryptedMessages> encrypted)
    : worker_(UcxContext(ranks, settings), UCS_THREAD_MODE_SERIALIZED),
      ways_(std::move(ways)),
      encrypted_(std::move(encrypted)),
      longest_copied_(longest_copied()),
      mailboxes_(ranks, matched_bits, longest_copied_) {
  if (!encrypted_ && !ways_.all().empty() && !user_says_what_ucx_uses())
    rails_ = std::make_unique<NetworkRails>(
        ways_.all(), ranks, [this](ucs_status_t status, const std::string& what) { check(status, what); });
}

void Engine::introduce(const std::vector<Introduction>& ranks, std::uint32_t me, unsigned sharing_shm) {
  if (sharing_shm != 0) shm_.watch(sharing_shm);
  std::vector<PlanEnds> ends;
  for (const Introduction& other : ranks) {
    ends.push_back(ways_.ends(node_type(ranks[me].node), node_type(other.node), me < other.rank));
    peers_.push_back({other.machine_id == ranks[me].machine_id, other.address,
                      std::make_unique<UcxEndpoint>(other.rank), ends.back()});
  }
  me_ = me;
  peers_have_mailboxes_ = mailboxes_.introduce(ranks, me);
  if (rails_) rails_->introduce(ranks, std::move(ends));
  for (Peer& peer : peers_) {
    if (!peer.same_machine || peer.endpoint->peer() == me_) continue;
    const ucs_status_t status = connect(peer);
    if (status != UCS_OK) unreached_ = {peer.endpoint->peer(), status};
  }
  if (encrypted_) encrypted_->introduce(ranks, me);
}

// Within a machine the life-line detects a dead peer. Only between machines does UCX watch the connection too, since
// that disables its fastest shared-memory protocols.
ucs_status_t Engine::connect(Peer& peer) { return worker_.connect(*peer.endpoint, peer.address, !peer.same_machine); }

UcxEndpoint& Engine::connected(std::uint32_t peer) {
  require_ucx();
  Peer& known = peers_[peer];
  if (!known.endpoint->is_open()) check_connected(peer, connect(known));
  return *known.endpoint;
}

void Engine::check_connected(std::uint32_t peer, ucs_status_t status) const {
  check(status, "connect to " + rank_text(peer));
}

void Engine::look_at_shm() {
  const std::string problem = shm_.look();
  if (problem.empty()) return;
  if (explainer_) explainer_(problem);
  throw Error(ErrorKind::io, problem);
}

void Engine::check(ucs_status_t status, const std::string& what) const {
  if (status == UCS_OK) return;
  const std::string problem = "UCX cannot " + what + ": " + ucx_library().functions().status_string(status);
  if (explainer_) explainer_(problem);
  throw Error(ErrorKind::io, problem);
}

std::optional<std::string> Engine::broken() const {
  if (encrypted_ && encrypted_->broken())
    return "the encrypted connection to " + rank_text(encrypted_->broken()->first) +
           " broke: " + encrypted_->broken()->second;
  const UcxEndpoint* endpoint = worker_.broken();
  if (endpoint == nullptr && rails_) endpoint = rails_->broken();
  if (endpoint == nullptr) return {};
  return "the connection to " + rank_text(endpoint->peer()) +
         " broke: " + ucx_library().functions().status_string(endpoint->problem());
}

// Within a machine UCX either copies twice, through shared memory, or the receiver reads the sender's memory. Ranks
// that all send at once use copies up to UCX's own limit.
bool Engine::goes_by_copies(std::uint32_t peer, std::size_t bytes, Awaited awaited) const {
  if (awaited == Awaited::by_all) return true;
  if (bytes <= longest_short || !peers_[peer].same_machine || user_sets_rendezvous())
    return awaited == Awaited::by_sender;
  return bytes <= longest_copied_;
}

void Engine::send(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                  Awaited awaited) {
  if (is_encrypted(peer)) {
    set_mailed(message, peer, tag, bytes);
    message.from = static_cast<const std::byte*>(data);
    return encrypted_->send(message);
  }
  message.receiving = false;
  message.peer = peer;
  message.reached = peer_reaches_memory(peer, tag, bytes);
  message.request = worker_.send(connected(peer), {static_cast<const std::byte*>(data), bytes, host(0)}, tag ^ tag_key_,
                                 goes_by_copies(peer, bytes, awaited));
  if (UCS_PTR_IS_ERR(message.request))
    check(UCS_PTR_STATUS(std::exchange(message.request, nullptr)), "send to " + rank_text(peer));
  if (message.request != nullptr) ++with_ucx_;
}

void Engine::send_rts(std::uint32_t peer, ucp_tag_t tag, Message& message) {
  if (!mailboxes_.reaches(peer)) return send(peer, tag, nullptr, 0, message);
  set_mailed(message, peer, tag, 0);
  mailboxes_.send(message);
}

// Hands messages that the two ranks cannot copy, or should not copy, to UCX.
void Engine::take_over() {
  while (Message* message = mailboxes_.next_left_to_ucx()) {
    message->waiting = false;
    if (message->receiving)
      receive(message->peer, left_to_ucx_tag(static_cast<int>(message->peer), message->number), matched_bits,
              message->into, message->bytes, *message);
    else
      send(message->peer, left_to_ucx_tag(static_cast<int>(me_), message->number), message->from, message->bytes,
           *message, message->twice ? Awaited::by_all : Awaited::later);
  }
}

void Engine::send_sized(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                        Awaited awaited) {
  if (!mailboxes_.takes(peer, tag, bytes)) {
    const auto way = way_of_long(peer, bytes, true);
    if (!way) return send(peer, tag, data, bytes, message, awaited);
    send_by(*way, peer, tag, {static_cast<const std::byte*>(data), bytes, host(0)}, message);
    message.railed->headed = true;
    message.railed->head = {tag, bytes};
    return send(peer, head_tag(tag), message.railed->head.data(), sizeof message.railed->head, message);
  }
  set_mailed(message, peer, tag, bytes);
  message.from = static_cast<const std::byte*>(data);
  mailboxes_.send(message);
  if (mailboxes_.leaves_any_to_ucx()) take_over();
}

void Engine::receive_sized(std::uint32_t peer, ucp_tag_t tag, void* data, std::size_t bytes, Message& message) {
  message.peer = peer;
  message.tag = tag;
  message.bytes = bytes;
  if (!mailboxes_.takes(peer, tag, bytes)) {
    if (const auto way = way_of_long(peer, bytes, false)) {
      receive_by(*way, peer, tag, {static_cast<std::byte*>(data), bytes, host(0)}, message);
      message.railed->headed = true;
      return receive(peer, tag, matched_bits, message.railed->head.data(), sizeof message.railed->head, message);
    }
    receive(peer, tag, matched_bits, data, bytes, message);
    if (mailboxes_.reaches(peer) && message.request != nullptr) mailboxes_.list(message);
    return;
  }
  message.receiving = true;
  message.into = static_cast<std::byte*>(data);
  mailboxes_.receive(message);
}

std::optional<std::string> Engine::wrong_length() const {
  if (const auto found = mailboxes_.unlike_listed())
    return unlike(found->second, found->first->tag, found->first->bytes, source_of(found->first->tag));
  for (const Message* one : mailboxes_.awaited()) {
    ucp_tag_recv_info_t info{};
    if (!worker_.probe(one->tag ^ tag_key_, matched_bits, info)) continue;
    info.sender_tag ^= tag_key_;
    return unlike(info, one->tag, one->bytes, source_of(one->tag));
  }
  return {};
}

void Engine::receive(std::uint32_t peer, ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes,
                     Message& message) {
  if (is_encrypted(peer)) {
    set_mailed(message, peer, tag, bytes);
    message.into = static_cast<std::byte*>(data);
    return encrypted_->receive(message);
  }
  require_ucx();
  if (tag >> group_shift == rendezvous_group) mask = ~ucp_tag_t{0};  // after an RTS the whole tag is known
  message.receiving = true;
  message.peer = peer;
  message.reached = peer_reaches_memory(peer, tag, bytes);
  message.request = worker_.receive({static_cast<std::byte*>(data), bytes, host(0)}, tag ^ tag_key_, mask);
  if (!UCS_PTR_IS_ERR(message.request)) {
    ++with_ucx_;
    return;
  }
  const ucs_status_t status = UCS_PTR_STATUS(std::exchange(message.request, nullptr));
  if (status != UCS_ERR_MESSAGE_TRUNCATED) check(status, "receive");
}

bool Engine::test_request(Message& message) {
  const ucs_status_t status =
      message.receiving ? worker_.test(message.request, message.info) : worker_.test(message.request);
  if (status == UCS_INPROGRESS) return false;
  --with_ucx_;
  if (message.listed) mailboxes_.unlist(message);
  if (message.receiving) message.info.sender_tag ^= tag_key_;
  if (message.came_with != 0) message.info.sender_tag = message.came_with;
  // The arrived message has its length: the caller compares.
  if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED)
    check(status, message.receiving ? "receive" : "send to " + rank_text(message.peer));
  return true;
}

void Engine::cancel(Message& message) noexcept {
  // Only this process touches the memory of an encrypted message: nothing is held.
  if (is_encrypted(message.peer)) return encrypted_->cancel(message);
  mailboxes_.cancel(message, held_);
  if (message.railed) rails_->cancel(message, held_);
  const std::shared_ptr<RailedMessage> railed = std::move(message.railed);  // has the head
  if (message.request == nullptr) return;
  --with_ucx_;
  if (message.listed) mailboxes_.unlist(message);
  worker_.cancel(message.request);
  const UcxRequest request = std::exchange(message.request, nullptr);
  give_up(request, message.peer, message.reached, railed);
}

void Engine::give_up(UcxRequest request, std::uint32_t peer, bool reached,
                     const std::shared_ptr<void>& needs) noexcept {
  if (worker_.give_up(request) || !reached) return;
  held_.add(peer, [this, request, needs] { return worker_.is_over(request); });
}

void Engine::progress_ucx() noexcept {
  if (rails_) rails_->progress();
  turn_ucx();
}

void Engine::give_up_one_sided(UcxRequest request, std::uint32_t peer) noexcept {
  give_up(request, peer, !peers_[peer].same_machine && has_rdma_device(), nullptr);
}

// Whether UCX may have told the peer where the bytes are. For copies through shared memory and for TCP, only the
// owner's process moves them.
bool Engine::peer_reaches_memory(std::uint32_t peer, ucp_tag_t tag, std::size_t bytes) const {
  if (!peers_[peer].same_machine) return has_rdma_device();
  if (user_sets_rendezvous()) return true;
  return bytes > (is_of_collective(tag) ? longest_by_ucx_alone : std::max<std::size_t>(longest_copied_, longest_short));
}

void Engine::close(Deadline deadline) noexcept {
  if (rails_) rails_->close(deadline);
  if (encrypted_) encrypted_->close(deadline);
  if (unreached_ || !worker_.close(deadline, [this] { progress(); })) worker_.leave();
}

}  // namespace waywiser
