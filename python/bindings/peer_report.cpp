#include "waywiser/measure/peer_report.hpp"

#include <nanobind/stl/string.h>

#include "bindings/bindings.hpp"
#include "bindings/progress.hpp"
#include "waywiser/measure/machine.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

constexpr Bytes quick_bytes = 64 << 20;
constexpr Bytes full_bytes = 256 << 20;
constexpr Bytes virtual_bytes = 1 << 20;

std::string peer_report_json(const Topology& topology, const std::string& options_json, const nb::object& callback) {
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  ProgressBridge progress(callback);
  Json report;
  {
    const nb::gil_scoped_release released;
    const std::unique_ptr<Platform> platform = open_platform(topology, options.backend);
    const Bytes bytes = platform->backend() != "cuda" ? virtual_bytes : options.quick ? quick_bytes : full_bytes;
    report = peer_report(*platform, topology, bytes, progress.callback());
  }
  progress.rethrow();
  return report.dump();
}

}  // namespace

void bind_peer_report(nb::module_& m) {
  m.def(
      "peer_report", peer_report_json, "topology"_a, "options_json"_a, "progress"_a.none() = nb::none(),
      "Peer access, rates (GB/s) and latencies (microseconds) between all GPUs, with peer access off and on, as JSON. "
      "Raises Error.");
}
