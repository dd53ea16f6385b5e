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

// The devices of a kind that a topology has, and the row of most of them: of the first one if several rows have equally
// many.
class KindOfPart {
 public:
  KindOfPart(const Topology& topology, std::string_view kind, const Json& parts, std::string_view what)
      : kind_(kind), any_(row_for_any(parts)) {
    std::vector<std::pair<const Json*, int>> counts;
    for (const Device& device : topology.devices) {
      if (device.kind != kind) continue;
      const Json* part = part_of(device, parts, what);
      devices_.emplace(device.name, part);
      const auto known = std::ranges::find(counts, part, &std::pair<const Json*, int>::first);
      if (known == counts.end())
        counts.emplace_back(part, 1);
      else
        ++known->second;
    }
    const auto most = std::ranges::max_element(counts, {}, &std::pair<const Json*, int>::second);
    if (most != counts.end()) row_ = most->first;
  }

  const Json* row() const { return row_; }

  // The entry of the row for any machine.
  const Json& any(const std::string& name) const { return any_.at("values").at(name); }

  // The same, if it depends on this kind of part.
  const Json* entry_of_any(const std::string& name) const {
    const Json& entry = any(name);
    return entry.value("of", "") == kind_ ? &entry : nullptr;
  }

  Assumptions assumed(const std::string& name, const Json& any) const {
    const Json* own = row_ != nullptr && row_->at("values").contains(name) ? &row_->at("values").at(name) : nullptr;
    Assumptions all;
    for (const auto& [device, row] : devices_) {
      std::string instead = any.value("assumed", "");
      if (own != nullptr) instead = row == row_ ? own->value("assumed", "") : "that of most " + words() + " here";
      if (own == nullptr && !any.value("from", "").empty() && plain_name(device) == any.value("from", "")) continue;
      if (!instead.empty()) all.insert({part(device), name, any.value("what", name), instead});
    }
    return all;
  }

 private:
  static const Json& row_for_any(const Json& parts) {
    const Json& rows = parts.at("parts");
    const auto found = std::ranges::find_if(rows, [](const Json& row) { return row.value("kind", "") == "any"; });
    if (found == rows.end()) refuse_input("parts", "there is no row for any machine");
    return *found;
  }

  std::string words() const {
    if (kind_ == "switch") return "PCIe switches";
    if (kind_ == "nic") return "NICs";
    if (kind_ == "nvswitch") return "NVSwitches";
    return kind_ == "cpu" ? "CPUs" : kind_ == "gpu" ? "GPUs" : "networks";
  }

  // NICs and switches have names of their place, not of their type.
  std::string part(const std::string& device) const {
    return device.empty() || kind_ == "nic" || kind_ == "switch" ? "the " + words() : device;
  }

  std::string kind_;
  const Json& any_;
  const Json* row_ = nullptr;
  std::map<std::string, const Json*> devices_;
};

}  // namespace

const Costs::Value& Costs::find(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) refuse_input("simulator", "there is no cost " + quoted(name, 64));
  return found->second;
}

double Costs::operator[](std::string_view name) const {
  const Value& value = find(name);
  value.asked = true;
  return value.number;
}

Assumptions Costs::assumed() const {
  Assumptions all;
  for (const auto& [name, value] : values_)
    if (value.asked) all.insert(value.assumed.begin(), value.assumed.end());
  return all;
}

void Costs::set(std::string_view name, double value, std::string_view what) {
  const auto found = values_.find(name);
  if (found == values_.end())
    refuse_input(what, quoted(name, 64) + " is not a cost of the simulator; one is copy.issue");
  if (!std::isfinite(value) || value < 0) refuse_input(what, std::string(name) + " must be a finite number from 0 on");
  found->second = {value};
}

std::map<std::string, double> Costs::values() const {
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : values_) numbers[name] = value.number;
  return numbers;
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
  Costs costs;
  for (const Json& part : require_array(parts, "parts", what)) {
    const bool any = require_string(part, "kind", what) == "any";
    for (const auto& [name, entry] : require(part, "values", what).items()) {
      require_string(entry, "source", what);  // no number without one
      if (any) costs.values_.emplace(name, Costs::Value{require_number(entry, "value", what)});
    }
  }
  for (const std::string_view kind : {"cpu", "gpu", "nvswitch", "nic", "switch", "network"}) {
    const KindOfPart own(topology, kind, parts, what);
    if (own.row() != nullptr)
      for (const auto& [name, entry] : own.row()->at("values").items()) {
        costs.set(name, require_number(entry, "value", what), what);
        // A number that rows of this kind have, but does not depend on it elsewhere: a network's latency of NICs.
        if (own.entry_of_any(name) == nullptr)
          costs.values_.find(name)->second.assumed = own.assumed(name, own.any(name));
      }
    for (auto& [name, value] : costs.values_)
      if (const Json* entry = own.entry_of_any(name)) value.assumed = own.assumed(name, *entry);
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
