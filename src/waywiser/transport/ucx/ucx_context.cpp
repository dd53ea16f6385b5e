#include "waywiser/transport/ucx/ucx_context.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

using Configuration = std::unique_ptr<ucp_config_t, decltype(UcxFunctions::config_release)>;

void set(const Configuration& configuration, const std::string& name, const std::string& value) {
  check_ucx(ucx_library().functions().config_modify(configuration.get(), name.c_str(), value.c_str()),
            "take " + name + "=" + value);
}

// With too little free space UCX takes other memory where it needs /dev/shm, and crashes; so it says what is wrong.
void use_whole_shm(const Configuration& configuration) {
  set(configuration, "WARN_INVALID_CONFIG", "n");  // older libraries do not know all of these names
  set(configuration, "POSIX_ALLOC", "md");
  set(configuration, "POSIX_SHM_MIN_SIZE", "0");
}

Configuration read_configuration() {
  const UcxFunctions& ucx = ucx_library().functions();
  ucp_config_t* raw = nullptr;
  check_ucx(ucx.config_read("WAYWISER", nullptr, &raw), "read its configuration");
  Configuration configuration(raw, ucx.config_release);
  use_whole_shm(configuration);
  return configuration;
}

struct ApiVersion {
  unsigned major, minor;
};

// That of these headers, or of an older library, such as the one that MPI has loaded: UCX would warn of it at each
// rank, and what it lacks is not called.
ApiVersion api_version() {
  unsigned major = 0, minor = 0, release = 0;
  ucx_library().functions().get_version(&major, &minor, &release);
  if (major == UCP_API_MAJOR && minor < UCP_API_MINOR) return {major, minor};
  return {UCP_API_MAJOR, UCP_API_MINOR};
}

template <typename Owner>
ucs_status_t open_with(const ucp_config_t* configuration, std::uint64_t features, std::size_t endpoints, Owner& owner) {
  ucp_params_t parameters{};
  parameters.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  parameters.features = features;
  parameters.estimated_num_eps = endpoints;
  ucp_context_h context = nullptr;
  const ApiVersion api = api_version();
  const ucs_status_t status =
      ucx_library().functions().init_version(api.major, api.minor, &parameters, configuration, &context);
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

std::string UcxStatus::text() const { return ucx_library().functions().status_string(code_); }

void check_ucx(UcxStatus status, const std::string& what) {
  if (!status.good()) throw Error(ErrorKind::device, "UCX cannot " + what + ": " + status.text());
}

ucs_status_t UcxContext::open(const UcxSelection& selection, std::size_t endpoints, Owner& owner) {
  const Configuration configuration = read_configuration();
  set(configuration, "TLS", selection.transports);
  set(configuration, "NET_DEVICES", selection.devices.empty() ? "all" : selection.devices);
  for (const auto& [name, value] : selection.settings) set(configuration, name, value);
  return open_with(configuration.get(), UCP_FEATURE_TAG, endpoints, owner);
}

UcxContext::UcxContext(std::size_t endpoints, const Settings& settings) {
  if (!ucx_library().usable()) throw Error(ErrorKind::unavailable, ucx_library().why_not());
  const Configuration configuration = read_configuration();
  for (const auto& [name, value] : settings) set(configuration, name, value);
  check_ucx(open_with(configuration.get(), UCP_FEATURE_TAG | UCP_FEATURE_RMA, endpoints, context_),
            "open its transports");
}

UcxContext::UcxContext(const UcxSelection& selection, std::size_t endpoints) {
  if (!ucx_library().usable()) throw Error(ErrorKind::unavailable, ucx_library().why_not());
  check_ucx(open(selection, endpoints, context_), "open transports " + selection.transports);
}

UcxContext::Trial UcxContext::try_selection(const UcxSelection& selection) {
  Owner context;
  Trial trial{open(selection, 1, context), {}};
  if (trial.status.good()) trial.transports = transports_in(printed(context.get()));
  return trial;
}

std::string UcxContext::Trial::lacks(const UcxSelection& selection) const {
  const std::vector<std::string> needed = transports_of(selection);
  const auto missing = std::ranges::find_if(needed, [&](const std::string& transport) { return !has(transport); });
  return missing == needed.end() ? "" : *missing;
}

bool UcxContext::Trial::has(std::string_view transport) const {
  return std::ranges::any_of(transports, [&](const std::string& name) { return name.starts_with(transport); });
}

}  // namespace waywiser
