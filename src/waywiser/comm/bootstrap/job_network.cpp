#include "waywiser/comm/bootstrap/job_network.hpp"

#include <algorithm>
#include <sstream>

#include "waywiser/base/environment.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"
#include "waywiser/comm/network/network_choice.hpp"

namespace waywiser {
namespace {

// UCX's transports within a machine. GPU memory does not use them (comm/network): this UCX makes no CUDA call, since a
// thread for which a stream waits must not make one.
constexpr std::string_view local_names[] = {"self", "posix", "cma", "xpmem"};

std::optional<std::string> set_by_user(const std::string& name) {
  const auto of_groups = environment("WAYWISER_UCX_" + name);
  return of_groups ? of_groups : environment("UCX_" + name);
}

std::vector<std::string> parts_of(std::string_view list) {
  std::vector<std::string> parts;
  std::istringstream text{std::string(list)};
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

// Whether a UCX group name, or a transport name, covers the transport.
bool covers(std::string_view group, std::string_view name) {
  if (group == "sm" || group == "shm") return name == "posix" || name == "cma" || name == "xpmem";
  if (group == "mm") return name == "posix" || name == "xpmem";
  return group == name;
}

bool is_local(const std::string& transports) {
  return std::ranges::all_of(parts_of(transports), [](const std::string& part) {
    return part == "sysv" || part == "knem" || part == "cuda" || part.starts_with("cuda_") || part == "gdr_copy" ||
           std::ranges::any_of(local_names, [&](std::string_view name) { return covers(part, name); });
  });
}

JobNetwork within(const std::optional<std::string>& transports) {
  if (!transports) return {true, {{"TLS", local_transports({})}}, {}};
  if (transports->starts_with('^')) return {true, {{"TLS", local_transports(*transports)}}, {}};
  if (is_local(*transports)) return {};
  return {true, {}, "UCX_TLS=" + *transports + " lets UCX listen on networks, which this job does not need"};
}

// Only the user or the plan knows which machines RDMA devices on other networks connect.
JobNetwork at_root(const Launch& launch, bool transports_by_user) {
  const std::string interface = interface_towards(launch.root.value_or(Endpoint{}));
  std::vector<std::string> devices{interface}, left_out;
  const auto on_it = rdma_devices_on(interface), all = rdma_devices_on("");
  std::ranges::copy(transports_by_user ? all : on_it, std::back_inserter(devices));
  for (const std::string& device : all)
    if (std::ranges::count(devices, device) == 0) left_out.push_back(device);
  JobNetwork network{false, {{"NET_DEVICES", joined(devices)}}, {}};
  if (!left_out.empty())
    network.note = joined(left_out) + ": not on the network of WAYWISER_ROOT (" + interface +
                   ") and not used; UCX_NET_DEVICES or a plan can name them";
  return network;
}

}  // namespace

bool is_within_a_machine(const Launch& launch) {
  return launch.machine.empty() && (launch.size == 1 || !launch.root || is_loopback(*launch.root));
}

std::string local_transports(std::string_view excluded) {
  const std::vector<std::string> left_out = parts_of(excluded.starts_with('^') ? excluded.substr(1) : excluded);
  std::vector<std::string> names;
  for (const std::string_view name : local_names)
    if (std::ranges::none_of(left_out, [&](const std::string& group) { return covers(group, name); }))
      names.emplace_back(name);
  return joined(names);
}

JobNetwork job_network(const Launch& launch, const Plan* plan, bool encrypted) {
  const auto transports = set_by_user("TLS"), devices = set_by_user("NET_DEVICES");
  if (is_within_a_machine(launch)) return within(transports);
  const bool leaves_out = transports && transports->starts_with('^');
  if (encrypted) return {false, {{"TLS", local_transports(leaves_out ? *transports : "")}}, {}, false, true};
  if (plan != nullptr && !transports && !devices)
    if (auto settings = network_choice(*plan); !settings.empty()) return {false, std::move(settings), {}, true};
  JobNetwork network = devices ? JobNetwork{false} : at_root(launch, transports.has_value());
  if (!transports) network.settings.emplace_back("TLS", "^sysv,cuda");
  network.open = true;
  return network;
}

}  // namespace waywiser
