#include "waywiser/transport/ucx/ucx_availability.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/transport/bar_copy/gdrapi.hpp"
#include "waywiser/transport/split/split.hpp"
#include "waywiser/transport/ucx/gpudirect_rdma.hpp"
#include "waywiser/transport/ucx/ucx_context.hpp"
#include "waywiser/transport/ucx/ucx_selection.hpp"

namespace waywiser {
namespace {

using Reason = std::optional<std::string>;

Reason why_memory_does_not_fit(const Path& path, const UcxSelection& selection, const Platform& platform) {
  const int gpus = (path.source.is_gpu() ? 1 : 0) + (path.destination.is_gpu() ? 1 : 0);
  const std::string& name = selection.name;
  if (gpus != 0 && platform.backend() == "virtual_gpu") return "UCX cannot reach the memory of a virtual GPU";
  if (gpus != 0 && selection.memory == UcxSelection::Memory::host)
    return "UCX transport " + name + " is for host memory";
  if (gpus == 0 && selection.memory != UcxSelection::Memory::host && !selection.between_machines)
    return "UCX transport " + name + " is for GPU memory";
  if (gpus != 2 && selection.memory == UcxSelection::Memory::gpu_pair)
    return "UCX transport " + name + " is between two GPUs";
  return {};
}

std::string why_passed_over(const std::string& transport) {
  if (transport == "cuda_copy") return " (built without CUDA, or no GPU that it can use)";
  if (transport != "gdr_copy") return "";
  const GdrApi gdrcopy;
  return " (GDRCopy: " + gdrcopy.why_not().value_or("UCX is built without it, or has no GPU that it can use") + ")";
}

Reason why_not_on(const UcxSelection& selection) {
  if (selection.between_machines && selection.devices.empty())
    return "the two machines have no RDMA devices in one network";
  const UcxContext::Trial trial = UcxContext::try_selection(selection);
  const std::string where = selection.between_machines ? "on " + selection.devices : "here";
  const auto lacks = [&](const std::string& transport) {
    return ucx_library().text() + " has no transport '" + transport + "' " + where;
  };
  if (!trial.status.good()) return lacks(selection.transports) + " (" + trial.status.text() + ")";
  const std::string missing = trial.lacks(selection);
  return missing.empty() ? Reason() : lacks(missing) + why_passed_over(missing);
}

}  // namespace

Reason why_no_ucx(const Path& path, const TransportContext& context) {
  const std::vector<UcxSelection> rails = ucx_rails(path);
  if (rails.empty()) return "transports=" + std::string(path.parameter("transports")) + " is not known here";
  if (path.processes != 2) return "UCX is used between two processes only";
  if (rails.size() > 1) split_percents(path, rails.size());
  if (auto why = why_memory_does_not_fit(path, rails.front(), context.platform)) return why;
  if (!ucx_library().usable()) return ucx_library().why_not();
  for (const UcxSelection& rail : rails)
    if (auto why = why_not_on(rail)) return why;
  // Each end answers for its own GPUs.
  if (path.has("gdr") && path.parameter("gdr") == "on" && path.source.is_gpu())
    return why_no_gpudirect_rdma(SystemFiles(""));
  return {};
}

}  // namespace waywiser
