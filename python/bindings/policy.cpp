#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "bindings/bindings.hpp"
#include "bindings/other_machine.hpp"
#include "bindings/progress.hpp"
#include "waywiser/base/error.hpp"
#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"
#include "waywiser/measure/machine.hpp"
#include "waywiser/measure/old_names.hpp"
#include "waywiser/measure/other_machine.hpp"
#include "waywiser/measure/path_steps.hpp"
#include "waywiser/policy/choose.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/explain.hpp"
#include "waywiser/policy/verification.hpp"
#include "waywiser/transport/transport.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

Profile read_profile(const std::string& text) { return profile_from_json(parse_json(text, "profile"), "profile"); }
Plan read_plan(const std::string& text) { return plan_from_json(parse_json(text, "plan"), "plan"); }

nb::str text(std::string_view words) { return nb::str(words.data(), words.size()); }

std::string choose_json(const std::string& profile_json, const std::string& options_json) {
  const Hysteresis hysteresis = hysteresis_from_json(parse_json(options_json, "options"), "options");
  return to_json(choose(read_profile(profile_json), mechanism_order(), hysteresis)).dump();
}

std::string explain_json(const std::string& profile_json, const std::string& plan_json, const std::string& source,
                         const std::string& destination, int processes, const std::string& operation,
                         std::uint64_t bytes, const std::string& rail) {
  const Question question{
      parse_place(source), parse_place(destination), processes, parse_operation(operation), bytes, rail};
  return explain(read_profile(profile_json), read_plan(plan_json), question, mechanism_order()).dump();
}

std::string verify_json(const Topology& topology, const std::string& profile_json, const std::string& plan_json,
                        const std::string& options_json, const nb::object& callback, RemoteMachine* other_machine) {
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  const Profile whole = read_profile(profile_json);
  const NodeType reached = other_machine != nullptr ? measured_last(whole) : this_node;
  const Profile profile = without_other_machines(whole, [&](NodeType type) { return type != reached; });
  const Plan plan = read_plan(plan_json);
  if (profile.fingerprint != fingerprint(topology))
    throw Error(ErrorKind::invalid_input, "the profile was measured on another machine: " + profile.machine);
  ProgressBridge progress(callback);
  Verification verification;
  {
    const nb::gil_scoped_release released;
    const std::unique_ptr<Platform> platform = open_platform(topology, profile.backend);
    const auto meter =
        machine_meter(*platform, topology, profile.classes, options.peer_program, lines_to(other_machine));
    verification = verify_plan(profile, plan, *meter, options, progress.callback());
  }
  progress.rethrow();
  return to_json(verification).dump();
}

}  // namespace

void bind_policy(nb::module_& m) {
  m.def(
      "algorithm_of_today", [](const std::string& name) { return algorithm_of_today(name); }, "name"_a,
      "What a collective's algorithm in a profile or plan is called today, for names of older files.");
  m.def(
      "parse_way",
      [](const std::string& written) {
        Way way = parse_way(written);
        return std::pair(std::move(way.name), std::move(way.parameters));
      },
      "way"_a, nb::sig("def parse_way(way: str) -> tuple[str, dict[str, str]]"),
      "Name and parameters of a way as plans name it: NAME(KEY=VALUE,...). Raises InputError.");
  m.def(
      "mechanisms",
      [] {
        nb::dict summaries;
        for (const Mechanism& row : mechanisms()) summaries[text(row.name)] = text(row.summary);
        return summaries;
      },
      nb::sig("def mechanisms() -> dict[str, str]"), "Name and one sentence of each, in the order of the table.");
  m.def(
      "check_plan",
      [](const std::string& text, const std::string& what) { plan_from_json(parse_json(text, what), what); }, "text"_a,
      "what"_a = "plan", "Raises Error with one line when the text is not a valid plan.");
  m.def(
      "plan_hash",
      [](const std::string& text, const std::string& partner) { return plan_fingerprint(read_plan(text), partner); },
      "text"_a, "partner"_a,
      "Equal for plans of equal machines with equal rows of this partner, \"NCCL\". Raises Error.");
  m.def("choose", choose_json, "profile_json"_a, "options_json"_a = "{}",
        "Chooses a path for each class of pairs, operation and size; returns the plan as JSON. Raises Error.");
  m.def("explain", explain_json, "profile_json"_a, "plan_json"_a, "source"_a, "destination"_a, "processes"_a,
        "operation"_a, "bytes"_a, "rail"_a = "",
        "Why the plan takes which path for one transfer, as JSON. Raises Error.");
  m.def(
      "path_steps",
      [](const Topology& topology, const std::string& path_json, std::uint64_t bytes) {
        return steps_json(topology, path_from_json(parse_json(path_json, "path"), "path"), bytes).dump();
      },
      "topology"_a, "path_json"_a, "bytes"_a,
      "What happens on the way of a path, as JSON: [{who, what, from, to, over, limit, times}]. Raises Error.");
  m.def("verify_plan", verify_json, "topology"_a, "profile_json"_a, "plan_json"_a, "options_json"_a = "{}",
        "progress"_a.none() = nb::none(), "other_machine"_a.none() = nb::none(),
        "Measures the chosen path against all others at sizes that were not used for choosing; returns JSON. "
        "`progress` gets a JSON text and returns False to stop. Raises Error.");
  nb::class_<Chooser>(m, "Chooser", "Looks up the path of a message in a plan, in less than 100 ns in C++.")
      .def(
          "__init__", [](Chooser* self, const std::string& plan_json) { new (self) Chooser(read_plan(plan_json)); },
          "plan_json"_a)
      .def(
          "choose",
          [](const Chooser& self, const std::string& source, const std::string& destination, int processes,
             const std::string& operation, std::uint64_t bytes) -> std::optional<std::string> {
            const Place from = parse_place(source), to = parse_place(destination);
            const PlanRow* row = self.choose(from, to, processes, parse_operation(operation), bytes);
            return row == nullptr ? std::nullopt : std::optional(label(Chooser::path_for(*row, from, to)));
          },
          "source"_a, "destination"_a, "processes"_a, "operation"_a, "bytes"_a,
          "The label of the path to take, or None when the plan has nothing for this.");
}
