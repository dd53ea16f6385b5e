#include "waywiser/comm/bootstrap/network_choice.hpp"

#include <set>

#include "waywiser/path/network_families.hpp"

namespace waywiser {
namespace {

std::string list(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> network_choice(const Plan& plan) {
  std::set<std::string> transports, devices;
  for (const PlanRow& row : plan.rows) {
    if (!row.key.is_message() || !row.key.rail.empty()) continue;
    const Path path = row.path();
    if (!path.destination.other_machine() || path.source.is_gpu() || path.destination.is_gpu()) continue;
    if (!path.has("transports") || !path.has("device")) continue;
    const std::string transport(path.parameter("transports")), device(path.parameter("device"));
    transports.insert(transport == "network-tcp" ? "tcp" : transport);
    // The plan may be used at either end; UCX ignores a name that it does not find.
    for (const std::string& end : {device, turned_device(device)})
      for (const std::string& name : devices_here(end)) devices.insert(name);
  }
  if (devices.empty()) return {};
  return {{"TLS", "self,posix,cma,xpmem," + list(transports)}, {"NET_DEVICES", list(devices)}};
}

}  // namespace waywiser
