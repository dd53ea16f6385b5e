#include "waywiser/sim/costs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <vector>

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

constexpr std::string_view schema = "waywiser.parts";
constexpr int version = 1;

constexpr std::array<std::string_view, 7> idle_words{"NVIDIA", "Tesla", "Intel", "AMD", "IBM", "CPU", "Processor"};

bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

void drop(std::string& text, std::string_view what) {
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what)) text.erase(at, what.size());
}

bool has_name(std::string_view declared, std::string_view name) {
  if (declared.empty()) return name.empty();
  if (declared.front() == '*') {
    if (has_name(declared.substr(1), name)) return true;
    return !name.empty() && is_capital(name.front()) && has_name(declared, name.substr(1));
  }
  if (name.empty()) return false;
  const bool same = declared.front() == '#' ? is_digit(name.front()) : declared.front() == name.front();
  return same && has_name(declared.substr(1), name.substr(1));
}

bool claims(const Json& part, const std::string& name, std::string_view what) {
  return std::ranges::any_of(require_array(part, "names", what), [&](const Json& declared) {
    return declared.is_string() && has_name(declared.get<std::string>(), name);
  });
}

// The row of most devices of a kind; of the first one if several rows have equally many.
const Json* part_of_most(const Topology& topology, std::string_view kind, const Json& parts, std::string_view what) {
  std::vector<std::pair<const Json*, int>> counts;
  for (const Device& device : topology.devices) {
    if (device.kind != kind) continue;
    const Json* part = part_of(device, parts, what);
    const auto known = std::ranges::find(counts, part, &std::pair<const Json*, int>::first);
    if (known == counts.end())
      counts.emplace_back(part, 1);
    else
      ++known->second;
  }
  const auto most = std::ranges::max_element(counts, {}, &std::pair<const Json*, int>::second);
  return most == counts.end() ? nullptr : most->first;
}

}  // namespace

double Costs::operator[](std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) refuse_input("simulator", "there is no cost " + quoted(name, 64));
  return found->second;
}

void Costs::set(std::string_view name, double value, std::string_view what) {
  const auto found = values_.find(name);
  if (found == values_.end())
    refuse_input(what, quoted(name, 64) + " is not a cost of the simulator; one is copy.issue");
  if (!std::isfinite(value) || value < 0) refuse_input(what, std::string(name) + " must be a finite number from 0 on");
  found->second = value;
}

std::string plain_name(std::string_view name) {
  std::string text(name.substr(0, std::min(name.find('@'), name.find(','))));
  for (const std::string_view mark : {"(R)", "(r)", "(TM)", "(tm)", "(raw)"}) drop(text, mark);
  std::string plain;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (std::ranges::count(idle_words, word) != 0 || word.ends_with("-Core")) continue;
    plain += (plain.empty() ? "" : " ") + word;
  }
  return plain;
}

const Json* part_of(const Device& device, const Json& parts, std::string_view what) {
  const std::string name = plain_name(device.name);
  const Json* found = nullptr;
  for (const Json& part : require_array(parts, "parts", what)) {
    if (require_string(part, "kind", what) != device.kind || !claims(part, name, what)) continue;
    if (found != nullptr) refuse_input(what, "two rows of parts have the name " + name.substr(0, 64));
    found = &part;
  }
  return found;
}

Costs costs_of(const Topology& topology, const Json& parts, std::string_view what) {
  check_schema(parts, schema, version, what);
  const std::array<const Json*, 2> own{part_of_most(topology, "cpu", parts, what),
                                       part_of_most(topology, "gpu", parts, what)};
  Costs costs;
  for (const Json& part : require_array(parts, "parts", what)) {
    const bool applies = std::ranges::count(own, &part) != 0;
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
