#include "waywiser/transport/ucx/ucx_selection.hpp"

#include <algorithm>
#include <sstream>

#include "waywiser/path/network_families.hpp"

namespace waywiser {
namespace {

const std::vector<UcxSelection>& within_a_machine() {
  using enum UcxSelection::Memory;
  // cma and cuda_* cannot carry UCX's own messages, so posix does.
  static const std::vector<UcxSelection> rows{
      {"posix", "posix", "", host},
      {"sysv", "sysv", "", host},
      {"cma", "posix,cma", "", host},
      {"tcp", "tcp", "lo", host},  // without a device UCX spreads large messages over all network cards
      {"cuda_ipc", "posix,cuda_copy,cuda_ipc", "", gpu_pair},
      {"cuda_copy", "posix,cuda_copy", "", any_gpu},
  };
  return rows;
}

bool on(const Path& path, std::string_view name) { return path.has(name) && path.parameter(name) == "on"; }

std::vector<UcxSelection> between_machines(const Path& path) {
  const std::string wanted(path.parameter("transports"));
  if (wanted != "rc" && wanted != "dc" && wanted != "ud" && wanted != "network-tcp") return {};
  UcxSelection selection;
  selection.name = wanted == "network-tcp" ? "tcp" : wanted;
  selection.transports = selection.name;
  selection.between_machines = true;
  selection.memory = UcxSelection::Memory::any;
  if (path.source.is_gpu()) selection.transports += on(path, "gdrcopy") ? ",cuda_copy,gdr_copy" : ",cuda_copy";
  if (path.has("gdr")) selection.settings.emplace_back("IB_GPU_DIRECT_RDMA", on(path, "gdr") ? "yes" : "no");
  if (!path.has("device")) return {selection};
  std::vector<UcxSelection> rails;
  for (const std::string& device : devices_here(path.parameter("device"))) {
    selection.devices = device;
    rails.push_back(selection);
  }
  return rails;
}

}  // namespace

std::vector<UcxSelection> ucx_rails(const Path& path) {
  if (path.source.other_machine() != path.destination.other_machine()) return between_machines(path);
  const auto found = std::ranges::find(within_a_machine(), path.parameter("transports"), &UcxSelection::name);
  if (found == within_a_machine().end()) return {};
  return {*found};
}

std::string crosses_by(const UcxSelection& selection) {
  return selection.name == "cuda_copy" ? "posix" : selection.name;
}

std::vector<std::string> transports_of(const UcxSelection& selection) {
  std::vector<std::string> parts;
  std::istringstream text(selection.transports);
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace waywiser
