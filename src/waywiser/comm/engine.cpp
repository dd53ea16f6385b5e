#include "waywiser/comm/engine.hpp"

#include <algorithm>
#include <utility>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/tag.hpp"

namespace waywiser {
namespace {

ucp_request_param_t host_memory() {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.memory_type = UCS_MEMORY_TYPE_HOST;
  return parameters;
}

// Old versions (1.13) do not tell what came when a receive completes at once.
ucp_request_param_t always_a_request() {
  ucp_request_param_t parameters = host_memory();
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return parameters;
}

// Sent as copies up to a greater size (UCX_RNDV_SEND_NBR_THRESH and its successors).
ucp_request_param_t with_fast_completion() {
  ucp_request_param_t parameters = host_memory();
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_FAST_CMPL;
  return parameters;
}

std::string rank_text(std::uint32_t rank) { return "rank " + std::to_string(rank); }

}  // namespace

Engine::Engine(std::size_t ranks, const UcxContext::Settings& settings)
    : functions_(ucx_library().functions()), context_(ranks, settings), shorts_(ranks, matched_bits) {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check_ucx(functions_.worker_create(context_.get(), &parameters, &worker_), "create a worker");
}

Engine::~Engine() {
  if (may_be_destroyed())
    functions_.worker_destroy(worker_);
  else
    context_.abandon();
}

// UCX 1.13 ends the process when it has to give up a connection to another machine that was being made.
bool Engine::may_be_destroyed() const {
  return !unclosed_ &&
         std::ranges::all_of(peers_, [](const Peer& peer) { return peer.same_machine || peer.endpoint == nullptr; });
}

std::vector<std::byte> Engine::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check_ucx(functions_.worker_get_address(worker_, &address, &length), "tell its address");
  const auto* first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> bytes(first, first + length);
  functions_.worker_release_address(worker_, address);
  return bytes;
}

void Engine::introduce(const std::vector<Introduction>& ranks, std::uint32_t me) {
  for (const Introduction& other : ranks)
    peers_.push_back({this, other.rank, other.machine_id == ranks[me].machine_id, other.address});
  peers_have_mailboxes_ = shorts_.introduce(ranks, me);
}

// A peer of this machine that dies is known by its life-line; only between machines does UCX watch the connection too,
// as that rules its fastest ways through shared memory out.
void Engine::connect(Peer& peer) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t*>(peer.address.data());
  if (!peer.same_machine) {
    parameters.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler = {on_error, &peer};
  }
  check(functions_.ep_create(worker_, &parameters, &peer.endpoint), "connect to " + rank_text(peer.rank));
}

void Engine::check(ucs_status_t status, const std::string& what) const {
  if (status == UCS_OK) return;
  const std::string problem = "UCX cannot " + what + ": " + functions_.status_string(status);
  if (explainer_) explainer_(problem);
  throw Error(ErrorKind::io, problem);
}

void Engine::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
  auto* peer = static_cast<Peer*>(argument);
  peer->problem = status;
  peer->engine->broken_ = peer;
}

std::optional<std::string> Engine::broken() const {
  if (broken_ == nullptr) return {};
  return "the connection to " + rank_text(broken_->rank) + " broke: " + functions_.status_string(broken_->problem);
}

ucp_ep_h Engine::endpoint(std::uint32_t peer) {
  Peer& known = peers_[peer];
  if (known.endpoint == nullptr) connect(known);
  return known.endpoint;
}

void Engine::send(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                  bool awaited) {
  static const ucp_request_param_t parameters = host_memory(), done_soon = with_fast_completion();
  message.receiving = false;
  message.peer = peer;
  message.request = functions_.tag_send_nbx(endpoint(peer), data, bytes, tag, awaited ? &done_soon : &parameters);
  if (UCS_PTR_IS_ERR(message.request))
    check(UCS_PTR_STATUS(std::exchange(message.request, nullptr)), "send to " + rank_text(peer));
  if (message.request != nullptr) ++with_ucx_;
}

void Engine::send_sized(std::uint32_t peer, ucp_tag_t tag, const void* data, std::size_t bytes, Message& message,
                        bool awaited) {
  if (!shorts_.reaches(peer, bytes)) return send(peer, tag, data, bytes, message, awaited);
  message.receiving = false;
  message.peer = peer;
  message.tag = tag;
  message.from = static_cast<const std::byte*>(data);
  message.bytes = bytes;
  shorts_.send(message);
}

void Engine::receive_sized(std::uint32_t peer, ucp_tag_t tag, void* data, std::size_t bytes, Message& message) {
  message.peer = peer;
  message.tag = tag;
  message.bytes = bytes;
  if (!shorts_.reaches(peer, bytes)) {
    receive(tag, matched_bits, data, bytes, message);
    if (shorts_.reaches(peer, 0) && message.request != nullptr) shorts_.list(message);
    return;
  }
  message.receiving = true;
  message.into = static_cast<std::byte*>(data);
  shorts_.receive(message);
}

bool Engine::receive_at_once(std::uint32_t peer, ucp_tag_t tag, void* data, std::size_t bytes, Message& message) {
  if (!shorts_.reaches(peer, bytes)) return false;
  message.receiving = true;
  message.peer = peer;
  message.tag = tag;
  message.bytes = bytes;
  message.into = static_cast<std::byte*>(data);
  return shorts_.receive_at_once(message);
}

std::optional<std::string> Engine::wrong_length() const {
  if (const auto found = shorts_.too_short())
    return unlike(found->second, found->first->tag, found->first->bytes, source_of(found->first->tag));
  for (const Message* one : shorts_.awaited()) {
    ucp_tag_recv_info_t info{};
    if (functions_.tag_probe_nb(worker_, one->tag, matched_bits, 0, &info) != nullptr)
      return unlike(info, one->tag, one->bytes, source_of(one->tag));
  }
  return {};
}

void Engine::receive(ucp_tag_t tag, ucp_tag_t mask, void* data, std::size_t bytes, Message& message) {
  static const ucp_request_param_t parameters = always_a_request();
  message.receiving = true;
  message.request = functions_.tag_recv_nbx(worker_, data, bytes, tag, mask, &parameters);
  if (!UCS_PTR_IS_ERR(message.request)) {
    ++with_ucx_;
    return;
  }
  const ucs_status_t status = UCS_PTR_STATUS(std::exchange(message.request, nullptr));
  if (status != UCS_ERR_MESSAGE_TRUNCATED) check(status, "receive");
}

bool Engine::test_request(Message& message) {
  const ucs_status_t status = message.receiving ? functions_.tag_recv_request_test(message.request, &message.info)
                                                : functions_.request_check_status(message.request);
  if (status == UCS_INPROGRESS) return false;
  functions_.request_free(std::exchange(message.request, nullptr));
  --with_ucx_;
  if (message.listed) shorts_.unlist(message);
  // What came says how long it is: whoever asked compares.
  if (status != UCS_OK && status != UCS_ERR_MESSAGE_TRUNCATED)
    check(status, message.receiving ? "receive" : "send to " + rank_text(message.peer));
  return true;
}

void Engine::cancel(Message& message) noexcept {
  shorts_.cancel(message);
  if (message.request == nullptr) return;
  --with_ucx_;
  if (message.listed) shorts_.unlist(message);
  functions_.request_cancel(worker_, message.request);
  functions_.request_free(std::exchange(message.request, nullptr));
}

void Engine::close(Deadline deadline) noexcept {
  std::vector<UcxRequest> closing;
  for (Peer& peer : peers_) {
    if (peer.endpoint == nullptr) continue;
    const ucp_request_param_t parameters{};
    const UcxRequest request = functions_.ep_close_nbx(std::exchange(peer.endpoint, nullptr), &parameters);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (const UcxRequest request : closing) {
    while (functions_.request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) progress();
    if (functions_.request_check_status(request) == UCS_INPROGRESS) unclosed_ = true;
    functions_.request_free(request);
  }
}

}  // namespace waywiser
