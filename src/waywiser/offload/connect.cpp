#include "waywiser/offload/connect.hpp"

#include <limits>
#include <utility>

#include "waywiser/base/version.hpp"
#include "waywiser/comm/bootstrap/join_options.hpp"
#include "waywiser/comm/bootstrap/tcp.hpp"
#include "waywiser/group/group.hpp"
#include "waywiser/offload/request.hpp"
#include "waywiser/offload/serve_client.hpp"
#include "waywiser/offload/server_connection.hpp"

namespace waywiser {
namespace {

constexpr Seconds starting_patience = 40;  // for the client's process at the server
constexpr Seconds answering_patience = 5, listing_patience = 20;

std::string version_text(const std::string& release, std::int64_t protocol) {
  return "waywiser " + release + " (protocol " + std::to_string(protocol) + ")";
}

// A server of this version has refused already.
void check_same_version(const Json& meeting, const std::string& what) {
  const bool is_told = meeting.contains("version") && meeting.contains("protocol");
  const std::string here = version_text(std::string(version()), offload_protocol);
  const std::string there =
      is_told ? version_text(require_string(meeting, "version", what),
                             require_integer(meeting, "protocol", what, 0, std::numeric_limits<std::int32_t>::max()))
              : "an older one, which does not tell its version";
  if (there != here)
    refuse_input(what, "this client has " + here + ", the server " + there + ": install the same version at both");
}

JoinOptions join_as_client(const Json& meeting, const ServeLine& line, const RemoteGpuOptions& asked) {
  const std::string what = asked.address;
  JoinOptions options = usual_options();
  const auto port = static_cast<std::uint16_t>(require_integer(meeting, "port", what, 1, 65535));
  options.launch = Launch{"remote GPU",
                          client_rank,
                          2,
                          "remote-gpu-" + require_string(meeting, "job", what),
                          Endpoint{require_string(meeting, "host", what), port},
                          line.secret()};
  options.timeout = asked.timeout;
  const Json& encrypt = require(meeting, "encrypt", what);
  if (!encrypt.is_boolean()) refuse_input(what, "`encrypt` is true or false");
  options.encrypt = encrypt.get<bool>();
  options.interrupted = asked.interrupted;
  return options;
}

Json state_of_server(const RemoteGpuOptions& options) {
  const Interruptible interruptible(options.interrupted);
  return ask_server(options.address, read_serve_key(options.key), {{"do", "list"}}, answering_patience,
                    Deadline::in(listing_patience))
      .second;
}

}  // namespace

RemoteGpu connect_remote_gpu(const RemoteGpuOptions& options) {
  const Interruptible interruptible(options.interrupted);
  const Json request = {{"do", "use"}, {"gpu", options.gpu}, {"version", version()}, {"protocol", offload_protocol}};
  const auto asked = ask_server(options.address, read_serve_key(options.key), request, starting_patience,
                                Deadline::in(options.timeout));
  const auto& line = asked.first;
  const Json& meeting = asked.second;
  check_same_version(meeting, options.address);
  const std::string name = require_string(meeting, "gpu", options.address) + " of " + options.address;
  const auto limit = require_integer(meeting, "memory", options.address, 0, std::numeric_limits<std::int64_t>::max());
  const auto join = [&] {
    try {
      return Group::join(join_as_client(meeting, *line, options));
    } catch (const Error& error) {
      throw Error(error.kind(), name + ": " + error.what());
    }
  };
  const bool admits_plain = meeting.value("data_plain", false);
  RemoteGpu gpu(join(), name, static_cast<Bytes>(limit), line, admits_plain);
  if (options.data_plain) gpu.use_plain_data(options.interrupted);
  return gpu;
}

std::string remote_server_state(const RemoteGpuOptions& options) { return state_of_server(options).dump(); }

int remote_gpus(const RemoteGpuOptions& options) {
  return static_cast<int>(require_array(state_of_server(options), "gpus", options.address).size());
}

}  // namespace waywiser
