#include "waywiser/transport/ucx/ucx_worker.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr Seconds longest_close = 0.5;

UcxRequest checked(UcxRequest request, const char* what) {
  if (UCS_PTR_IS_ERR(request)) check_ucx(UCS_PTR_STATUS(request), what);
  return request;
}

using Configuration = std::unique_ptr<ucp_config_t, decltype(UcxFunctions::config_release)>;

Configuration read_configuration() {
  const UcxFunctions& ucx = ucx_library().functions();
  ucp_config_t* raw = nullptr;
  check_ucx(ucx.config_read("WAYWISER", nullptr, &raw), "read its configuration");
  return {raw, ucx.config_release};
}

template <typename Owner>
ucs_status_t open_with(const ucp_config_t* configuration, std::uint64_t features, std::size_t endpoints, Owner& owner) {
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  parameters.features = features;
  parameters.estimated_num_eps = endpoints;
  ucp_context_h context = nullptr;
  const ucs_status_t status =
      ucx_library().functions().init_version(UCP_API_MAJOR, UCP_API_MINOR, &parameters, configuration, &context);
  if (status == UCS_OK) owner.reset(context);
  return status;
}

std::string printed(ucp_context_h context) {
  char* text = nullptr;
  std::size_t length = 0;
  std::FILE* stream = ::open_memstream(&text, &length);
  if (stream == nullptr) return {};
  ucx_library().functions().context_print_info(context, stream);
  std::fclose(stream);
  std::string copy(text, length);
  std::free(text);  // NOLINT(cppcoreguidelines-no-malloc): open_memstream's
  return copy;
}

// "#      resource 0  :  md 0  dev 0  flags -- tcp/eth0": no other call tells them.
std::vector<std::string> transports_in(const std::string& information) {
  std::vector<std::string> names;
  std::istringstream lines(information);
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.rfind(' '), end = line.rfind('/');
    if (line.find(" resource ") == std::string::npos || begin == std::string::npos || end == std::string::npos)
      continue;
    if (begin < end) names.push_back(line.substr(begin + 1, end - begin - 1));
  }
  return names;
}

}  // namespace

void check_ucx(ucs_status_t status, const std::string& what) {
  if (status != UCS_OK)
    throw Error(ErrorKind::device, "UCX cannot " + what + ": " + ucx_library().functions().status_string(status));
}

ucs_status_t UcxContext::open(const UcxRoad& road, std::size_t endpoints, Owner& owner) {
  const Configuration configuration = read_configuration();
  const UcxFunctions& ucx = ucx_library().functions();
  const auto set = [&](const std::string& name, const std::string& value) {
    check_ucx(ucx.config_modify(configuration.get(), name.c_str(), value.c_str()), "take " + name + "=" + value);
  };
  set("TLS", road.transports);
  set("NET_DEVICES", road.devices.empty() ? "all" : road.devices);
  for (const auto& [name, value] : road.settings) set(name, value);
  return open_with(configuration.get(), UCP_FEATURE_TAG, endpoints, owner);
}

UcxContext::UcxContext(std::size_t endpoints, const Settings& settings) {
  if (!ucx_library().usable()) throw Error(ErrorKind::unavailable, ucx_library().why_not());
  const Configuration configuration = read_configuration();
  const auto set = [&](const std::string& name, const std::string& value) {
    check_ucx(ucx_library().functions().config_modify(configuration.get(), name.c_str(), value.c_str()),
              "take " + name + "=" + value);
  };
  if (!settings.empty()) set("WARN_INVALID_CONFIG", "n");  // names of what this machine has not
  for (const auto& [name, value] : settings) set(name, value);
  check_ucx(open_with(configuration.get(), UCP_FEATURE_TAG | UCP_FEATURE_RMA, endpoints, context_),
            "open its transports");
}

UcxContext::UcxContext(const UcxRoad& road, std::size_t endpoints) {
  if (!ucx_library().usable()) throw Error(ErrorKind::unavailable, ucx_library().why_not());
  check_ucx(open(road, endpoints, context_), "open transports " + road.transports);
}

UcxContext::Trial UcxContext::try_road(const UcxRoad& road) {
  Owner context;
  Trial trial{open(road, 1, context), {}};
  if (trial.status == UCS_OK) trial.transports = transports_in(printed(context.get()));
  return trial;
}

bool UcxContext::Trial::has(std::string_view transport) const {
  return std::ranges::any_of(transports, [&](const std::string& name) { return name.starts_with(transport); });
}

ucp_request_param_t parameters_for(Place place) {
  ucp_request_param_t parameters{};
  parameters.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
  parameters.memory_type = place.is_gpu() ? UCS_MEMORY_TYPE_CUDA : UCS_MEMORY_TYPE_HOST;
  return parameters;
}

std::vector<std::byte> address_of(ucp_worker_h worker) {
  const UcxFunctions& ucx = ucx_library().functions();
  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check_ucx(ucx.worker_get_address(worker, &address, &length), "tell its address");
  const auto* first = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> bytes(first, first + length);
  ucx.worker_release_address(worker, address);
  return bytes;
}

UcxWorker::UcxWorker(const UcxContext& context) {
  ucp_worker_params_t parameters{};
  parameters.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  parameters.thread_mode = UCS_THREAD_MODE_SINGLE;
  check_ucx(ucx_library().functions().worker_create(context.get(), &parameters, &worker_), "create a worker");
}

UcxWorker::~UcxWorker() {
  if (worker_ == nullptr) return;
  close_endpoint();
  ucx_library().functions().worker_destroy(worker_);
}

void UcxWorker::close_endpoint() noexcept {
  if (endpoint_ == nullptr || abandoned_) return;
  const UcxFunctions& ucx = ucx_library().functions();
  ucp_request_param_t parameters{};
  const UcxRequest request = ucx.ep_close_nbx(endpoint_, &parameters);
  if (!UCS_PTR_IS_PTR(request)) return;
  const Deadline deadline = Deadline::in(longest_close);
  while (ucx.request_check_status(request) == UCS_INPROGRESS && !deadline.passed()) progress();
  ucx.request_free(request);
}

void UcxWorker::connect(const std::vector<std::byte>& address, bool watched) {
  ucp_ep_params_t parameters{};
  parameters.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
  parameters.address = reinterpret_cast<const ucp_address_t*>(address.data());
  if (watched) {
    parameters.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    parameters.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    parameters.err_handler.cb = [](void*, ucp_ep_h, ucs_status_t) {};  // what is under way fails with the reason
  }
  check_ucx(ucx_library().functions().ep_create(worker_, &parameters, &endpoint_), "connect to the peer process");
}

std::vector<std::string> UcxWorker::transports() const {
  const UcxFunctions& ucx = ucx_library().functions();
  std::array<ucp_transport_entry_t, 16> entries{};
  ucp_ep_attr_t attributes{};
  attributes.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
  attributes.transports = {entries.data(), entries.size(), sizeof(ucp_transport_entry_t)};
  if (ucx.ep_query == nullptr || ucx.ep_query(endpoint_, &attributes) != UCS_OK) return {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < attributes.transports.num_entries && i < entries.size(); ++i)
    if (entries[i].transport_name != nullptr) names.emplace_back(entries[i].transport_name);
  return names;
}

UcxRequest UcxWorker::send(ConstRegion source, ucp_tag_t tag) {
  const ucp_request_param_t parameters = parameters_for(source.place);
  return checked(ucx_library().functions().tag_send_nbx(endpoint_, source.data, source.bytes, tag, &parameters),
                 "send");
}

UcxRequest UcxWorker::receive(Region destination, ucp_tag_t tag) {
  ucp_request_param_t parameters = parameters_for(destination.place);
  // A request even when the message is there already: UCX before 1.16 tells its length in no other way.
  parameters.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  return checked(ucx_library().functions().tag_recv_nbx(worker_, destination.data, destination.bytes, tag, ~ucp_tag_t{},
                                                        &parameters),
                 "receive");
}

UcxRequest UcxWorker::flush() {
  const ucp_request_param_t parameters{};
  return checked(ucx_library().functions().worker_flush_nbx(worker_, &parameters), "flush");
}

}  // namespace waywiser
