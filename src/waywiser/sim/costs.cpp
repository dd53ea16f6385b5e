#include "waywiser/sim/costs.hpp"

#include <algorithm>
#include <cmath>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

constexpr std::string_view schema = "waywiser.parts";
constexpr int version = 1;

bool matches(const Topology& topology, const Json& part, std::string_view what) {
  const std::string kind = require_string(part, "kind", what);
  if (kind == "any") return true;
  const Json& names = require_array(part, "names", what);
  return std::ranges::any_of(topology.devices, [&](const Device& device) {
    if (device.kind != kind) return false;
    return std::ranges::any_of(names, [&](const Json& name) {
      return name.is_string() && device.name.find(name.get<std::string>()) != std::string::npos;
    });
  });
}

}  // namespace

double Costs::operator[](std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) refuse_input("simulator", "there is no cost '" + std::string(name.substr(0, 64)) + "'");
  return found->second;
}

void Costs::set(std::string_view name, double value, std::string_view what) {
  const auto found = values_.find(name);
  if (found == values_.end())
    refuse_input(what, "'" + std::string(name.substr(0, 64)) + "' is not a cost of the simulator; one is copy.issue");
  if (!std::isfinite(value) || value < 0) refuse_input(what, std::string(name) + " must be a finite number from 0 on");
  found->second = value;
}

Costs costs_of(const Topology& topology, const Json& parts, std::string_view what) {
  check_schema(parts, schema, version, what);
  Costs costs;
  for (const Json& part : require_array(parts, "parts", what)) {
    const bool applies = matches(topology, part, what);
    const bool any = require_string(part, "kind", what) == "any";
    for (const auto& [name, entry] : require(part, "values", what).items()) {
      const double value = require_number(entry, "value", what);
      require_string(entry, "source", what);  // no number without one
      if (any) costs.values_.emplace(name, value);
      if (applies) costs.set(name, value, what);
    }
  }
  return costs;
}

void apply(Costs& costs, const Json& values, std::string_view what) {
  if (!values.is_object()) refuse_input(what, "costs must be an object of name and number");
  for (const auto& [name, entry] : values.items())
    costs.set(name, entry.is_object() ? require_number(entry, "value", what) : require_number(values, name, what),
              what);
}

}  // namespace waywiser::sim
