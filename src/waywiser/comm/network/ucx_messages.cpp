#include "waywiser/comm/network/ucx_messages.hpp"

#include <algorithm>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/message/rendezvous_tag.hpp"
#include "waywiser/policy/defaults.hpp"
#include "waywiser/topology/system_files.hpp"

namespace waywiser {
namespace {

constexpr std::size_t in_lane = defaults::lane_short, by_ucx_alone = defaults::ucx_alone;

// The size that loses least, whichever cores the system gives to the two processes.
Bytes longest_copied_of_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucx_library().functions().get_version(&major, &minor, &release);
  return std::pair(major, minor) >= std::pair(1u, 22u) ? defaults::ucx_copies : defaults::ucx_copies_before_1_22;
}

bool user_sets_rendezvous() {
  static const bool does = environment("UCX_RNDV_THRESH") || environment("WAYWISER_UCX_RNDV_THRESH");
  return does;
}

bool has_rdma_device() {
  static const bool has = !SystemFiles("").list("/sys/class/infiniband").empty();
  return has;
}

// After an RTS the whole tag is known.
Tag mask_of(Tag tag) { return tag >> group_shift == rendezvous_group ? ~Tag{0} : matched_bits; }

}  // namespace

UcxMessages::UcxMessages(std::size_t ranks, const UcxContext::Settings& settings, HeldMemory& held)
    : held_(held),
      worker_(UcxContext(ranks, settings), UcxThreads::several),
      longest_copied_(longest_copied_of_version()) {}

void UcxMessages::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  for (const Introduction& other : ranks)
    peers_.push_back(
        {other.machine_id == ranks[me].machine_id, other.address, std::make_unique<UcxEndpoint>(other.rank)});
  for (Peer& peer : peers_) {
    if (!peer.same_machine || peer.endpoint->peer() == me) continue;
    const ucs_status_t status = connect(peer);
    if (status != UCS_OK) unreached_ = {peer.endpoint->peer(), status};
  }
}

// Within a machine the life-line detects a dead peer. Only between machines does UCX watch the connection too, since
// that disables its fastest shared-memory protocols.
ucs_status_t UcxMessages::connect(Peer& peer) {
  return worker_.connect(*peer.endpoint, peer.address, !peer.same_machine);
}

UcxEndpoint& UcxMessages::connected(std::uint32_t peer) {
  require_ucx();
  Peer& known = peers_[peer];
  if (!known.endpoint->is_open()) check_connected(peer, connect(known));
  return *known.endpoint;
}

void UcxMessages::check_connected(std::uint32_t peer, ucs_status_t status) const {
  check(status, "connect to rank " + std::to_string(peer));
}

void UcxMessages::look_at_shm() {
  const std::string problem = shm_.look();
  if (problem.empty()) return;
  if (explainer_) explainer_(problem);
  throw Error(ErrorKind::io, problem);
}

void UcxMessages::fail(const std::string& what, const std::string& why) const {
  const std::string problem = "UCX cannot " + what + ": " + why;
  if (explainer_) explainer_(problem);
  throw Error(ErrorKind::io, problem);
}

std::string why_broken(const UcxEndpoint& endpoint) {
  return "the connection to rank " + std::to_string(endpoint.peer()) +
         " broke: " + ucx_library().functions().status_string(endpoint.problem());
}

std::optional<std::string> UcxMessages::broken() const {
  const UcxEndpoint* endpoint = worker_.broken();
  return endpoint == nullptr ? std::nullopt : std::optional(why_broken(*endpoint));
}

// Within a machine UCX either copies twice, through shared memory, or the receiver reads the sender's memory. Ranks
// that all send at once use copies up to UCX's own limit.
bool UcxMessages::goes_by_copies(const Message& message, Awaited awaited) const {
  if (awaited == Awaited::by_all) return true;
  if (message.bytes <= in_lane || !peers_[message.peer].same_machine || user_sets_rendezvous())
    return awaited == Awaited::by_sender;
  return message.bytes <= longest_copied_;
}

void UcxMessages::send(Message& message, Awaited awaited) {
  const ConstRegion data{message.from, message.bytes, host(0)};
  const UcxRequest request =
      worker_.send(connected(message.peer), data, message.tag ^ tag_key_, goes_by_copies(message, awaited));
  if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), "send to rank " + std::to_string(message.peer));
  begin(message, request);
  sent_.add(message.bytes);
}

void UcxMessages::receive(Message& message) {
  require_ucx();
  const Region into{message.into, message.bytes, host(0)};
  const UcxRequest request = worker_.receive(into, message.tag ^ tag_key_, mask_of(message.tag));
  if (!UCS_PTR_IS_ERR(request)) return begin(message, request);
  const ucs_status_t status = UCS_PTR_STATUS(request);
  if (status != UCS_ERR_MESSAGE_TRUNCATED) check(status, "receive");
}

void UcxMessages::begin(Message& message, UcxRequest request) noexcept {
  if (request == nullptr) return;
  message.carrier = this;
  message.handle = request;
  message.state = Message::State::asked;
  ++open_;
}

void UcxMessages::end(Message& message) noexcept {
  --open_;
  message.state = Message::State::complete;
  message.handle = nullptr;
  if (std::exchange(message.listed, false)) listed_.remove(message);
}

bool UcxMessages::test(Message& message) {
  UcxRequest request = message.handle;
  ucp_tag_recv_info_t info{};
  const ucs_status_t status = message.receiving ? worker_.test(request, info) : worker_.test(request);
  if (status == UCS_INPROGRESS) return false;
  end(message);
  if (message.receiving) message.info = {info.sender_tag ^ tag_key_, info.length};
  // The arrived message has its length: the caller compares.
  if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED)
    check(status, message.receiving ? "receive" : "send to rank " + std::to_string(message.peer));
  return true;
}

std::optional<Received> UcxMessages::probe(std::uint32_t, Tag tag, Tag mask) {
  ucp_tag_recv_info_t info{};
  if (!worker_.probe(tag ^ tag_key_, mask, info)) return {};
  return Received{info.sender_tag ^ tag_key_, info.length};
}

void UcxMessages::list(Message& message) noexcept {
  message.listed = true;
  listed_.append(message);
}

void UcxMessages::give_up(Message& message, const std::shared_ptr<void>& needs) noexcept {
  if (!message.is_open()) return;
  const UcxRequest request = message.handle;
  end(message);
  worker_.cancel(request);
  give_up(request, message.peer, peer_reaches_memory(message), needs);
}

// `reached`: the request has reached the peer.
void UcxMessages::give_up(UcxRequest request, std::uint32_t peer, bool reached,
                          const std::shared_ptr<void>& needs) noexcept {
  if (worker_.give_up(request) || !reached) return;
  held_.add(peer, [this, request, needs] { return worker_.is_over(request); });
}

UcxRequest UcxMessages::begun(UcxRequest request, const Call& call) const {
  if (UCS_PTR_IS_ERR(request)) check(UCS_PTR_STATUS(request), text(call));
  return request;
}

std::unique_ptr<UcxRemoteMemory> UcxMessages::open_memory(std::uint32_t peer, const std::vector<std::byte>& key) {
  auto memory = std::make_unique<UcxRemoteMemory>();
  check(memory->open(connected(peer), key), "open the memory of rank " + std::to_string(peer));
  return memory;
}

void* UcxMessages::put(const UcxRemoteMemory& there, std::uint64_t address, ConstRegion data, const Call& call,
                       std::uint32_t peer) {
  sent_.add(data.bytes);
  return begun(there.put(connected(peer), data, address), call);
}

void* UcxMessages::get(const UcxRemoteMemory& there, std::uint64_t address, Region data, const Call& call,
                       std::uint32_t peer) {
  return begun(there.get(connected(peer), data, address), call);
}

void* UcxMessages::flush_puts(const Call& call) { return begun(worker_.flush(), call); }

bool UcxMessages::is_over(void*& access, const Call& call) {
  const ucs_status_t status = worker_.test(access);
  if (status == UCS_INPROGRESS) return false;
  if (status != UCS_OK) check(status, text(call));
  return true;
}

void UcxMessages::give_up_one_sided(void* access, std::uint32_t peer) noexcept {
  give_up(access, peer, !peers_[peer].same_machine && has_rdma_device(), nullptr);
}

// Whether UCX may have told the peer where the bytes are. For copies through shared memory and for TCP, only the
// owner's process moves them.
bool UcxMessages::peer_reaches_memory(const Message& message) const {
  if (!peers_[message.peer].same_machine) return has_rdma_device();
  if (user_sets_rendezvous()) return true;
  return message.bytes > (is_of_collective(message.tag) ? by_ucx_alone : std::max(longest_copied_, in_lane));
}

void UcxMessages::close(Deadline deadline, const std::function<void()>& turn) noexcept {
  if (unreached_ || !worker_.close(deadline, turn)) worker_.leave();
}

}  // namespace waywiser
