#include "waywiser/comm/bootstrap/job_network.hpp"

#include <algorithm>
#include <sstream>

#include "waywiser/base/environment.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/network_choice.hpp"
#include "waywiser/comm/bootstrap/root_network.hpp"

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

// Transports of UCX that do not work between all ranks of this machine.
std::vector<std::string> not_working(const LocalWays& ways) {
  std::vector<std::string> names;
  if (!ways.why_no_shm.empty()) names.emplace_back("posix");
  if (!ways.copies) names.insert(names.end(), {"cma", "xpmem"});
  return names;
}

// A list of transports or of groups, "^..." too, without these.
std::string without(const std::string& list, const std::vector<std::string>& names) {
  if (names.empty()) return list;
  if (list.starts_with('^')) return list + "," + joined(names);
  if (list == "all") return "^" + joined(names);
  std::vector<std::string> kept;
  for (const std::string& part : parts_of(list)) {
    if (std::ranges::none_of(names, [&](const std::string& name) { return covers(part, name); })) {
      kept.push_back(part);
      continue;
    }
    for (const std::string_view local : local_names)
      if (covers(part, local) && std::ranges::find(names, local) == names.end()) kept.emplace_back(local);
  }
  return joined(kept);
}

bool uses_posix(const std::optional<std::string>& transports) {
  if (!transports || *transports == "all") return true;
  const bool named = std::ranges::any_of(parts_of(transports->starts_with('^') ? transports->substr(1) : *transports),
                                         [](const std::string& part) { return covers(part, "posix"); });
  return named != transports->starts_with('^');
}

// Why TCP must carry messages within the machine; empty: shared memory does.
std::string why_by_tcp(const std::optional<std::string>& transports, const LocalWays& ways) {
  if (!ways.why_split.empty()) return ways.why_split;
  return uses_posix(transports) ? ways.why_no_shm : "";
}

JobNetwork by_loopback(const std::string& local, const std::string& why, const LocalWays& ways) {
  if (!ways.why_no_loopback.empty())
    throw Error(ErrorKind::unavailable,
                why + ", and TCP cannot carry their messages: " + ways.why_no_loopback +
                    "; one PID, user, IPC and network namespace for all ranks helps (docker run --pid=host --ipc=host "
                    "--network=host), "
                    "or WAYWISER_ROOT=HOST:PORT at an address that all of them reach");
  return {true,
          {{"TLS", local + ",tcp"}, {"NET_DEVICES", "lo"}},
          why + ": TCP over loopback carries messages",
          false,
          false,
          true};
}

JobNetwork within(const Launch& launch, const std::optional<std::string>& transports, const LocalWays& ways) {
  const std::string why = why_by_tcp(transports, ways);
  const bool listed = transports && !transports->starts_with('^');
  if (listed && is_local(*transports)) {
    if (!why.empty())
      throw Error(ErrorKind::unavailable,
                  why + ", and UCX_TLS=" + *transports + " leaves out TCP, which carries messages then");
    return {};
  }
  if (listed) {
    JobNetwork network{
        true, {}, "UCX_TLS=" + *transports + " lets UCX listen on networks, which this job does not need"};
    if (!not_working(ways).empty()) network.settings = {{"TLS", without(*transports, not_working(ways))}};
    if (!why.empty()) network.note = why + ": UCX_TLS=" + *transports + " says what carries messages";
    return network;
  }
  if (launch.size == 1) return {true, {{"TLS", "self"}}, {}};
  const std::string local = without(local_transports(transports.value_or("")), not_working(ways));
  return why.empty() ? JobNetwork{true, {{"TLS", local}}, {}} : by_loopback(local, why, ways);
}

// The network of ranks on several machines, without what does not work within this one.
JobNetwork between(JobNetwork network, const std::optional<std::string>& transports, const LocalWays& ways) {
  const std::vector<std::string> names = not_working(ways);
  const std::string why = why_by_tcp(transports, ways);
  const auto chosen = std::ranges::find(network.settings, "TLS", [](const auto& each) { return each.first; });
  if (chosen != network.settings.end())
    chosen->second = without(chosen->second, names);
  else if (transports && !names.empty())
    network.settings.emplace_back("TLS", without(*transports, names));
  if (!why.empty()) network.note += (network.note.empty() ? "" : "; ") + why + ": the network carries messages";
  return network;
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

JobNetwork open_network(const Launch& launch, const Plan* plan, const std::optional<std::string>& transports,
                        const std::optional<std::string>& devices) {
  if (plan != nullptr && !transports && !devices)
    if (auto settings = network_choice(*plan); !settings.empty()) return {false, std::move(settings), {}, true};
  JobNetwork network = devices ? JobNetwork{false} : at_root(launch, transports.has_value());
  if (!transports) network.settings.emplace_back("TLS", "^sysv,cuda");
  network.open = true;
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

JobNetwork job_network(const Launch& launch, const Plan* plan, bool encrypted, const LocalWays& ways) {
  const auto transports = set_by_user("TLS"), devices = set_by_user("NET_DEVICES");
  JobNetwork network;
  if (is_within_a_machine(launch)) {
    network = within(launch, transports, ways);
  } else if (encrypted) {
    // TLS carries what goes to other machines, and to ranks that are reached like those.
    const bool leaves_out = transports && transports->starts_with('^');
    const std::string local = without(local_transports(leaves_out ? *transports : ""), not_working(ways));
    network = {false, {{"TLS", local}}, {}};
    if (uses_posix(transports) && !ways.why_no_shm.empty()) network = by_loopback(local, ways.why_no_shm, ways);
    network.within_a_machine = false;
    network.encrypted = true;
  } else {
    network = between(open_network(launch, plan, transports, devices), transports, ways);
  }
  network.shm = launch.size > 1 && uses_posix(transports) && ways.why_no_shm.empty();
  return network;
}

}  // namespace waywiser
