#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <functional>
#include <optional>

#include "bindings/bindings.hpp"
#include "bindings/other_machine.hpp"
#include "bindings/progress.hpp"
#include "waywiser/measure/machine.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace waywiser;

namespace {

std::string measure_json(const Topology& topology, const std::string& options_json,
                         const std::optional<std::string>& previous_json, const nb::object& callback,
                         RemoteMachine* other_machine) {
  const CampaignOptions options = campaign_options_from_json(parse_json(options_json, "options"), "options");
  std::optional<Profile> previous;
  if (previous_json) previous = profile_from_json(parse_json(*previous_json, "profile"), "profile");
  ProgressBridge progress(callback);
  Profile profile;
  {
    const nb::gil_scoped_release released;
    profile = measure(topology, options, previous ? &*previous : nullptr, progress.callback(), lines_to(other_machine));
  }
  progress.rethrow();
  return to_json(profile).dump();
}

}  // namespace

void bind_measure(nb::module_& m) {
  m.def("measure", measure_json, "topology"_a, "options_json"_a, "previous_profile_json"_a.none() = nb::none(),
        "progress"_a.none() = nb::none(), "other_machine"_a.none() = nb::none(),
        "Measures the paths of this machine, and those to the one of rank 1 with `other_machine`, and returns the "
        "profile as JSON. `progress` gets a JSON text and returns "
        "False to stop; what was measured so far is returned then. Raises Error.");
  m.def(
      "check_profile",
      [](const std::string& text, const std::string& what) { profile_from_json(parse_json(text, what), what); },
      "text"_a, "what"_a = "profile", "Raises Error with one line when the text is not a valid profile.");
}
