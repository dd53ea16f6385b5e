#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>

#include "bindings/bindings.hpp"
#include "bindings/progress.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/measure/other_machine.hpp"
#include "waywiser/policy/verification.hpp"
#include "waywiser/sim/collective_request.hpp"
#include "waywiser/sim/exchange.hpp"
#include "waywiser/sim/flow_problem.hpp"
#include "waywiser/sim/request.hpp"
#include "waywiser/sim/simulated_meter.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

// `costs_json`: {"parts": a file of parts, "values": {name: number} on top of it, "curves": of a calibration}.
sim::NodeModel node_model(const Topology& topology, const std::string& costs_json) {
  const Json costs = parse_json(costs_json, "costs");
  sim::Costs found = sim::costs_of(topology, require(costs, "parts", "costs"), "parts");
  if (costs.contains("values")) sim::apply(found, costs.at("values"), "costs");
  sim::Curves curves;
  if (costs.contains("curves")) curves = sim::curves_from_json(costs.at("curves"), "curves");
  return {topology, std::move(found), std::move(curves)};
}

// Further types of node: topology and costs of each.
using Others = std::vector<std::pair<Topology, std::string>>;

class NodeModels {
 public:
  explicit NodeModels(const Others& others) {
    for (const auto& [topology, costs] : others)
      models_.emplace_back(new sim::NodeModel(node_model(topology, costs)));  // made in place: it cannot be moved
    for (const auto& model : models_) all_.push_back(model.get());
  }
  const std::vector<const sim::NodeModel*>& all() const noexcept { return all_; }

 private:
  std::vector<std::unique_ptr<sim::NodeModel>> models_;
  std::vector<const sim::NodeModel*> all_;
};

// "" for the machine alone.
sim::ClusterSpec cluster_in(const std::string& cluster_json, const NodeModels& others) {
  if (cluster_json.empty()) return {};
  sim::ClusterSpec cluster = sim::cluster_from_json(parse_json(cluster_json, "cluster"), "cluster");
  cluster.others = others.all();
  return cluster;
}

template <typename Simulation>
std::string simulated(const nb::object& callback, const Simulation& simulation) {
  ProgressBridge progress(callback);
  Json answer;
  {
    const nb::gil_scoped_release released;
    answer = simulation(progress.callback());
  }
  progress.rethrow();
  return answer.dump();
}

std::string simulate_json(const Topology& topology, const std::string& costs_json, const std::string& request_json,
                          const nb::object& callback, const Others& others) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const NodeModels more(others);
  const Json request = parse_json(request_json, "request");
  return simulated(callback, [&](const ProgressCallback& progress) {
    return sim::simulate_paths(node, more.all(), request, progress);
  });
}

std::string simulate_collectives_json(const Topology& topology, const std::string& costs_json,
                                      const std::string& request_json, const nb::object& callback,
                                      const Others& others) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const NodeModels more(others);
  const Json request = parse_json(request_json, "request");
  return simulated(callback, [&](const ProgressCallback& progress) {
    return sim::simulate_collectives(node, more.all(), request, progress);
  });
}

std::string simulate_exchange_json(const Topology& topology, const std::string& costs_json,
                                   const std::string& request_json) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const Json request = parse_json(request_json, "request");
  const nb::gil_scoped_release released;
  return sim::simulate_exchange(node, request).dump();
}

std::string measure_simulated_json(const Topology& topology, const std::string& costs_json,
                                   const std::string& options_json, const std::optional<std::string>& previous_json,
                                   const nb::object& callback, const std::string& cluster_json, const Others& others) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const NodeModels more(others);
  const sim::ClusterSpec cluster = cluster_in(cluster_json, more);
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  std::optional<Profile> previous;
  if (previous_json) previous = profile_from_json(parse_json(*previous_json, "profile"), "profile");
  return simulated(callback, [&](const ProgressCallback& progress) {
    return to_json(sim::measure_simulated(node, cluster, options, previous ? &*previous : nullptr, progress));
  });
}

std::string verify_simulated_json(const Topology& topology, const std::string& costs_json,
                                  const std::string& profile_json, const std::string& plan_json,
                                  const std::string& options_json, const nb::object& callback,
                                  const std::string& cluster_json, const Others& others) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const NodeModels more(others);
  const sim::ClusterSpec cluster = cluster_in(cluster_json, more);
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  const Profile profile = profile_from_json(parse_json(profile_json, "profile"), "profile");
  const Plan plan = plan_from_json(parse_json(plan_json, "plan"), "plan");
  if (profile.fingerprint != fingerprint(topology))
    throw Error(ErrorKind::invalid_input, "the profile is of another machine: " + profile.machine);
  const Profile reached =
      without_other_machines(profile, [&](NodeType type) { return !sim::reached(node, cluster).contains(type); });
  return simulated(callback, [&](const ProgressCallback& progress) {
    sim::SimulatedMeter meter(node, reached.classes, cluster);
    return to_json(verify_plan(reached, plan, meter, options, progress));
  });
}

}  // namespace

void bind_sim(nb::module_& m) {
  m.def(
      "simulator_costs",
      [](const Topology& topology, const std::string& costs_json) {
        return Json(node_model(topology, costs_json).costs().values()).dump();
      },
      "topology"_a, "costs_json"_a, "The costs that hold for a machine, by name, as JSON.");
  m.def("simulate_collectives", simulate_collectives_json, "topology"_a, "costs_json"_a, "request_json"_a,
        "progress"_a.none() = nb::none(), "others"_a = Others(),
        "Times collectives on clusters that are not here; request and answer as in sim/collective_request.hpp.");
  m.def("simulate", simulate_json, "topology"_a, "costs_json"_a, "request_json"_a, "progress"_a.none() = nb::none(),
        "others"_a = Others(),
        "Times paths on nodes that are not here; request and answer as in sim/request.hpp. Raises Error.");
  m.def("simulate_exchange", simulate_exchange_json, "topology"_a, "costs_json"_a, "request_json"_a,
        "Times transfers that begin at once; request and answer as in sim/exchange.hpp. Raises Error.");
  m.def(
      "simulate_flows", [](const std::string& problem) { return sim::flow_ends(parse_json(problem, "flows")).dump(); },
      "problem_json"_a, "When each of some flows over shared links ends; see sim/flow_problem.hpp. Raises Error.");
  m.def("measure_simulated", measure_simulated_json, "topology"_a, "costs_json"_a, "options_json"_a,
        "previous_profile_json"_a.none() = nb::none(), "progress"_a.none() = nb::none(), "cluster_json"_a = "",
        "others"_a = Others(),
        "What `measure` does, with simulated times; the profile says so. With a cluster as in sim/request.hpp also "
        "the roads to its other nodes; type 0 is that of the machine, `others` are further ones. Raises Error.");
  m.def("verify_simulated", verify_simulated_json, "topology"_a, "costs_json"_a, "profile_json"_a, "plan_json"_a,
        "options_json"_a = "{}", "progress"_a.none() = nb::none(), "cluster_json"_a = "", "others"_a = Others(),
        "What `verify_plan` does, with simulated times.");
}
