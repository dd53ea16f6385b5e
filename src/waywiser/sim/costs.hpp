#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "waywiser/base/json.hpp"
#include "waywiser/sim/assumption.hpp"
#include "waywiser/topology/topology.hpp"

namespace waywiser::sim {

// Numbers that are not in a topology: start-up times of copies, software overheads, limits of root complexes. In
// seconds, bytes, bytes per second, or as a share. Each has its source in the file of parts.
class Costs {
 public:
  // Throws invalid_input for an unknown name. A number that is assumed is one of assumed() from then on.
  double operator[](std::string_view name) const;
  // Without that.
  double peek(std::string_view name) const { return find(name).number; }
  bool has(std::string_view name) const { return values_.contains(name); }
  // What was assumed in the numbers that were asked for.
  Assumptions assumed() const;
  // It is known then. Throws invalid_input: unknown name, not finite, negative.
  void set(std::string_view name, double value, std::string_view what);
  std::map<std::string, double> values() const;

 private:
  friend Costs costs_of(const Topology& topology, const Json& parts, std::string_view what);
  struct Value {
    double number = 0;
    Assumptions assumed{};
    mutable bool asked = false;
  };
  const Value& find(std::string_view name) const;

  std::map<std::string, Value, std::less<>> values_;
};

// The name without maker, marks, clock and number of cores: "NVIDIA A100-SXM4-40GB" is A100-SXM4-40GB,
// "Intel(R) Xeon(R) Gold 6240R CPU @ 2.40GHz" is Xeon Gold 6240R.
std::string plain_name(std::string_view name);
// The row of a file of parts that has a device's whole plain name among its names; in a row's names '#' is any digit
// and '*' any capital letters, or none. nullptr: no row matches. Throws invalid_input: two rows match.
const Json* part_of(const Device& device, const Json& parts, std::string_view what);
// From a file of schema "waywiser.parts": the row for any machine, overridden by that of the topology's CPUs and that
// of its GPUs. If a node has several kinds of either, the most frequent kind counts. A number of the row for any
// machine that is of one part ("of": its kind, "from": its plain name) is assumed for others. Throws invalid_input.
Costs costs_of(const Topology& topology, const Json& parts, std::string_view what);
// Replaces some of them: {"name": number} or {"name": {"value": number, "source": text}}.
void apply(Costs& costs, const Json& values, std::string_view what);

}  // namespace waywiser::sim
