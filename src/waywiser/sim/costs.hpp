#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "waywiser/base/json.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser::sim {

// The numbers that a topology does not hold: starts of copies, software overheads, limits of root complexes. Seconds,
// bytes, bytes per second or a share. Each comes with its source in the file of parts.
class Costs {
 public:
  // Throws invalid_input when there is no such number.
  double operator[](std::string_view name) const;
  bool has(std::string_view name) const { return values_.contains(name); }
  // Throws invalid_input: unknown name, not finite, negative.
  void set(std::string_view name, double value, std::string_view what);
  const std::map<std::string, double, std::less<>>& values() const noexcept { return values_; }

 private:
  friend Costs costs_of(const Topology& topology, const Json& parts, std::string_view what);
  std::map<std::string, double, std::less<>> values_;
};

// From a file of schema "waywiser.parts": the entries for any machine, then those whose names occur in the name of the
// topology's CPUs, GPUs, NICs, later ones over earlier ones. Throws invalid_input.
Costs costs_of(const Topology& topology, const Json& parts, std::string_view what);
// Replaces some of them: {"name": number} or {"name": {"value": number, "source": text}}.
void apply(Costs& costs, const Json& values, std::string_view what);

}  // namespace waywiser::sim
