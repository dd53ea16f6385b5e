#include "waywiser/measure/campaign_options.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/measure/profile_fields.hpp"

namespace waywiser {
namespace {

bool given(const Json& value, std::string_view key) { return value.contains(key) && !value.at(key).is_null(); }

std::string string_of(const Json& entry, std::string_view key, std::string_view what) {
  if (!entry.is_string()) refuse_input(what, "'" + std::string(key) + "' must be a list of strings");
  return entry.get<std::string>();
}

void read_lists(CampaignOptions& options, const Json& value, std::string_view what) {
  if (given(value, "places"))
    for (const Json& entry : list_field(value, "places", what, 256))
      options.places.push_back(parse_place(string_of(entry, "places", what)));
  if (given(value, "operations")) {
    options.operations.clear();
    for (const Json& entry : list_field(value, "operations", what, 4))
      options.operations.push_back(parse_operation(string_of(entry, "operations", what)));
    if (options.operations.empty()) refuse_input(what, "'operations' must not be empty");
  }
  if (given(value, "processes")) {
    options.processes.clear();
    for (const Json& entry : list_field(value, "processes", what, 2)) {
      if (!entry.is_number_integer() || (entry != 1 && entry != 2)) refuse_input(what, "'processes' may hold 1 and 2");
      options.processes.push_back(entry.get<int>());
    }
    if (options.processes.empty()) refuse_input(what, "'processes' must not be empty");
  }
}

void read_sizes(CampaignOptions& options, const Json& value, std::string_view what) {
  if (given(value, "min_bytes")) options.min_bytes = std::max<Bytes>(1, bytes_field(value, "min_bytes", what));
  if (given(value, "max_bytes")) options.max_bytes = bytes_field(value, "max_bytes", what);
  if (options.max_bytes < options.min_bytes) refuse_input(what, "'max_bytes' is below 'min_bytes'");
}

}  // namespace

CampaignOptions campaign_options_from_json(const Json& value, std::string_view what) {
  if (!value.is_object()) refuse_input(what, "must be an object");
  CampaignOptions options;
  if (given(value, "backend")) options.backend = text_field(value, "backend", what);
  if (!std::ranges::count(std::vector<std::string>{"auto", "cuda", "host", "virtual_gpu"}, options.backend))
    refuse_input(what, "'backend' is '" + options.backend + "': write auto, cuda, host or virtual_gpu");
  if (given(value, "quick")) options.quick = bool_field(value, "quick", what);
  if (options.quick) options.budget_seconds = quick_budget_seconds;
  if (given(value, "budget_seconds")) options.budget_seconds = positive_field(value, "budget_seconds", what);
  if (given(value, "all_pairs")) options.all_pairs = bool_field(value, "all_pairs", what);
  if (given(value, "survey")) options.survey = bool_field(value, "survey", what);
  if (given(value, "peer_program")) options.peer_program = text_field(value, "peer_program", what);
  if (given(value, "seed"))
    options.seed = static_cast<std::uint64_t>(require_integer(value, "seed", what, 0, INT64_MAX));
  read_lists(options, value, what);
  read_sizes(options, value, what);
  return options;
}

Json to_json(const Progress& progress) {
  Json value{{"done", progress.done},
             {"total", progress.total},
             {"seconds_left", progress.seconds_left},
             {"label", progress.label}};
  if (progress.so_far) value["profile"] = to_json(*progress.so_far);
  return value;
}

}  // namespace waywiser
