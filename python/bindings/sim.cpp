#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "bindings/bindings.hpp"
#include "bindings/progress.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/policy/verification.hpp"
#include "waywiser/sim/collective_request.hpp"
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

using Simulation = Json (*)(const sim::NodeModel&, const Json&, const ProgressCallback&);

template <Simulation simulation>
std::string simulate_json(const Topology& topology, const std::string& costs_json, const std::string& request_json,
                          const nb::object& callback) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const Json request = parse_json(request_json, "request");
  ProgressBridge progress(callback);
  Json answer;
  {
    const nb::gil_scoped_release released;
    answer = simulation(node, request, progress.callback());
  }
  progress.rethrow();
  return answer.dump();
}

std::string measure_simulated_json(const Topology& topology, const std::string& costs_json,
                                   const std::string& options_json, const std::optional<std::string>& previous_json,
                                   const nb::object& callback) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  std::optional<Profile> previous;
  if (previous_json) previous = profile_from_json(parse_json(*previous_json, "profile"), "profile");
  ProgressBridge progress(callback);
  Profile profile;
  {
    const nb::gil_scoped_release released;
    profile = sim::measure_simulated(node, options, previous ? &*previous : nullptr, progress.callback());
  }
  progress.rethrow();
  return to_json(profile).dump();
}

std::string verify_simulated_json(const Topology& topology, const std::string& costs_json,
                                  const std::string& profile_json, const std::string& plan_json,
                                  const std::string& options_json, const nb::object& callback) {
  const sim::NodeModel node = node_model(topology, costs_json);
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  const Profile profile = profile_from_json(parse_json(profile_json, "profile"), "profile");
  const Plan plan = plan_from_json(parse_json(plan_json, "plan"), "plan");
  if (profile.fingerprint != fingerprint(topology))
    throw Error(ErrorKind::invalid_input, "the profile is of another machine: " + profile.machine);
  ProgressBridge progress(callback);
  Verification verification;
  {
    const nb::gil_scoped_release released;
    sim::SimulatedMeter meter(node, profile.classes);
    verification = verify_plan(profile, plan, meter, options, progress.callback());
  }
  progress.rethrow();
  return to_json(verification).dump();
}

}  // namespace

void bind_sim(nb::module_& m) {
  m.def(
      "simulator_costs",
      [](const Topology& topology, const std::string& costs_json) {
        return Json(node_model(topology, costs_json).costs().values()).dump();
      },
      "topology"_a, "costs_json"_a, "The costs that hold for a machine, by name, as JSON.");
  m.def("simulate_collectives", simulate_json<sim::simulate_collectives>, "topology"_a, "costs_json"_a,
        "request_json"_a, "progress"_a.none() = nb::none(),
        "Times collectives on clusters that are not here; request and answer as in sim/collective_request.hpp.");
  m.def("simulate", simulate_json<sim::simulate_paths>, "topology"_a, "costs_json"_a, "request_json"_a,
        "progress"_a.none() = nb::none(),
        "Times paths on nodes that are not here; request and answer as in sim/request.hpp. Raises Error.");
  m.def(
      "simulate_flows", [](const std::string& problem) { return sim::flow_ends(parse_json(problem, "flows")).dump(); },
      "problem_json"_a, "When each of some flows over shared links ends; see sim/flow_problem.hpp. Raises Error.");
  m.def("measure_simulated", measure_simulated_json, "topology"_a, "costs_json"_a, "options_json"_a,
        "previous_profile_json"_a.none() = nb::none(), "progress"_a.none() = nb::none(),
        "What `measure` does, with simulated times; the profile says so. Raises Error.");
  m.def("verify_simulated", verify_simulated_json, "topology"_a, "costs_json"_a, "profile_json"_a, "plan_json"_a,
        "options_json"_a = "{}", "progress"_a.none() = nb::none(), "What `verify_plan` does, with simulated times.");
}
