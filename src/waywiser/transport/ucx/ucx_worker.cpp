#include "waywiser/transport/ucx/ucx_worker.hpp"

#include <array>
#include <utility>

namespace waywiser {
namespace {

ucp_request_param_t parameters_for(Place place) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.memory_type = place.is_gpu() ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  return parameters;
}

}  // namespace

UcxWorker::UcxWorker(UcxContext context, UcxThreads threads)
    : functions_(&ucx_library().functions()), context_(std::move(context)) {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = threads == UcxThreads::one ? UCS_THREAD_MODE_SINGLE : UCS_THREAD_MODE_SERIALIZED;
  check_ucx(functions_->worker_create(context_.get(), &parameters, &worker_), "create a worker");
}

UcxWorker::~UcxWorker() {
  if (may_be_destroyed())
    functions_->worker_destroy(worker_);
  else
    context_.abandon();
}

bool UcxWorker::may_be_destroyed() const noexcept { return !is_left_ && watched_ == 0 && unfinished_ == 0; }

std::vector<std::byte> UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check_ucx(functions_->worker_get_address(worker_, &address, &length), "tell its address");
  const auto* first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> bytes(first, first + length);
  functions_->worker_release_address(worker_, address);
  return bytes;
}

ucs_status_t UcxWorker::connect(UcxEndpoint& endpoint, const std::vector<std::byte>& address, bool watched) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  if (watched) {
    parameters.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler = {on_error, &endpoint};
  }
  endpoint.worker_ = this;
  const ucs_status_t status = functions_->ep_create(worker_, &parameters, &endpoint.handle_);
  if (status != UCS_OK) return status;
  open_.push_back(&endpoint);
  watched_ += watched ? 1 : 0;
  return status;
}

// Requests under way fail with the reason.
void UcxWorker::on_error(void* argument, ucp_ep_h, ucs_status_t status) {
  auto* endpoint = static_cast<UcxEndpoint*>(argument);
  endpoint->problem_ = status;
  endpoint->worker_->broken_ = endpoint;
}

std::vector<std::string> UcxWorker::transports(const UcxEndpoint& endpoint) const {
  std::array<ucp_transport_entry_t, 16> entries{};
  ucp_ep_attr_t attributes{};
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports = {entries.data(), entries.size(), sizeof(ucp_transport_entry_t)};
  if (functions_->ep_query == nullptr || functions_->ep_query(endpoint.get(), &attributes) != UCS_OK) return {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < attributes.transports.num_entries && i < entries.size(); ++i)
    if (entries[i].transport_name != nullptr) names.emplace_back(entries[i].transport_name);
  return names;
}

std::vector<UcxRequest> UcxWorker::begin_to_close() noexcept {
  std::vector<UcxRequest> closing;
  for (UcxEndpoint* endpoint : std::exchange(open_, {})) {
    const ucp_request_param_t parameters{};
    const UcxRequest request = functions_->ep_close_nbx(std::exchange(endpoint->handle_, nullptr), &parameters);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  watched_ = 0;
  return closing;
}

UcxRequest UcxWorker::send(const UcxEndpoint& to, ConstRegion source, ucp_tag_t tag, bool done_soon) {
  ucp_request_param_t parameters = parameters_for(source.place);
  if (done_soon) parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_FAST_CMPL;
  return functions_->tag_send_nbx(to.get(), source.data, source.bytes, tag, &parameters);
}

UcxRequest UcxWorker::receive(Region destination, ucp_tag_t tag, ucp_tag_t mask) {
  ucp_request_param_t parameters = parameters_for(destination.place);
  // Always makes a request, even if the message has arrived: UCX before 1.16 reports its length in no other way.
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return functions_->tag_recv_nbx(worker_, destination.data, destination.bytes, tag, mask, &parameters);
}

UcxRequest UcxWorker::flush() {
  const ucp_request_param_t parameters{};
  return functions_->worker_flush_nbx(worker_, &parameters);
}

bool UcxWorker::probe(ucp_tag_t tag, ucp_tag_t mask, ucp_tag_recv_info_t& info) const {
  return functions_->tag_probe_nb(worker_, tag, mask, 0, &info) != nullptr;
}

ucs_status_t UcxWorker::test(UcxRequest& request) noexcept {
  const ucs_status_t status = functions_->request_check_status(request);
  if (status != UCS_INPROGRESS) functions_->request_free(std::exchange(request, nullptr));
  return status;
}

ucs_status_t UcxWorker::test(UcxRequest& request, ucp_tag_recv_info_t& received) noexcept {
  const ucs_status_t status = functions_->tag_recv_request_test(request, &received);
  if (status != UCS_INPROGRESS) functions_->request_free(std::exchange(request, nullptr));
  return status;
}

void UcxWorker::cancel(UcxRequest request) noexcept { functions_->request_cancel(worker_, request); }

bool UcxWorker::give_up(UcxRequest request) noexcept {
  ++unfinished_;
  return is_over(request);
}

bool UcxWorker::is_over(UcxRequest given_up) noexcept {
  if (test(given_up) == UCS_INPROGRESS) return false;
  --unfinished_;
  return true;
}

}  // namespace waywiser
