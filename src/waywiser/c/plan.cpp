#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "waywiser/base/environment.hpp"
#include "waywiser/c/handles.hpp"
#include "waywiser/comm/bootstrap/plan_fingerprint.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/cost.hpp"
#include "waywiser/topology/discover.hpp"
#include "waywiser/topology/topology.hpp"

using namespace waywiser;

struct ww_plan {
  Chooser chooser;
};

namespace {

std::string_view given_text(const char* text, const char* what) {
  return text == nullptr ? throw Error(ErrorKind::invalid_input, std::string(what) + " is NULL") : text;
}

template <std::size_t N>
void write(char (&into)[N], const std::string& text) {
  const std::size_t length = std::min(text.size(), N - 1);
  std::memcpy(into, text.data(), length);
  into[length] = '\0';
}

// 0 beyond the measured sizes.
Seconds expected_at(const std::vector<std::pair<Bytes, Seconds>>& expected, Bytes bytes) {
  std::vector<Point> points;
  for (const auto& [size, seconds] : expected) points.push_back({.bytes = size, .seconds = seconds});
  const Cost cost(std::move(points));
  const auto wanted = static_cast<double>(bytes);
  return cost.known(wanted) ? cost.seconds(wanted) : 0;
}

void write(ww_plan_choice& choice, const PlanRow& row, const Way& way, Bytes bytes) {
  write(choice.way, text(way));
  write(choice.why, row.why);
  choice.from_bytes = row.from_bytes;
  choice.to_bytes = row.to_bytes;
  choice.seconds = expected_at(row.expected, bytes);
  if (const RankedWay* second = row.runner_up()) {
    write(choice.runner_up, text(second->way));
    choice.runner_up_ratio = second->ratio;
  }
}

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::unavailable, "the plan has no row for " + what);
}

void choose_path(const Chooser& chooser, const ww_plan_key& key, Bytes bytes, ww_plan_choice& choice) {
  const Place source = parse_place(key.source),
              destination = parse_place(given_text(key.destination, "the destination"));
  const Operation operation = parse_operation(given_text(key.operation, "the operation"));
  const std::string_view rail = key.rail == nullptr ? "" : key.rail;
  if (key.processes < 1 || key.processes > 2) throw Error(ErrorKind::invalid_input, "processes are 1 or 2");
  const PlanRow* row = chooser.choose(source, destination, key.processes, operation, bytes, rail);
  if (row == nullptr) refuse(std::string(name(operation)) + " from " + text(source) + " to " + text(destination));
  const Path path = Chooser::path_for(*row, source, destination);
  write(choice, *row, {path.mechanism, path.parameters}, bytes);
}

const PlanRow* row_of_partner(const Chooser& chooser, const WaysOf& wanted, std::string_view partner, Bytes bytes) {
  for (const PlanRow& row : chooser.plan().rows) {
    const PlanKey& key = row.key;
    const bool same = key.operation == wanted.operation && key.memory == wanted.memory && key.ranks == wanted.ranks;
    if (same && key.partner == partner && bytes >= row.from_bytes && bytes <= row.to_bytes) return &row;
  }
  return nullptr;
}

void choose_way(const Chooser& chooser, const ww_plan_key& key, Bytes bytes, ww_plan_choice& choice) {
  const WaysOf wanted{given_text(key.operation, "the operation"), given_text(key.memory, "the memory"), key.ranks};
  const std::string partner = key.partner == nullptr ? "" : key.partner;
  if (key.ranks < 2) throw Error(ErrorKind::invalid_input, "a plan is for 2 ranks or more");
  const PlanRow* row =
      partner.empty() ? chooser.row_of(wanted, bytes) : row_of_partner(chooser, wanted, partner, bytes);
  if (row == nullptr)
    refuse(std::string(wanted.operation) + " of " + std::to_string(wanted.ranks) + " ranks, " +
           std::string(wanted.memory) + " arrays" + (partner.empty() ? "" : ", " + partner));
  write(choice, *row, row->way(), bytes);
}

}  // namespace

int ww_plan_open(const char* file, ww_plan** plan) {
  return guarded([&] {
    given(plan, "the place for the plan");
    const std::string named = file != nullptr ? file : environment("WAYWISER_PLAN").value_or("");
    if (named.empty()) throw Error(ErrorKind::unavailable, "no plan: WAYWISER_PLAN is not set");
    *plan = new ww_plan{Chooser(plan_from_json(read_json(named), named))};
  });
}

int ww_plan_choose(const ww_plan* plan, const ww_plan_key* key, size_t bytes, ww_plan_choice* choice) {
  return guarded([&] {
    const Chooser& chooser = given(plan, "the plan").chooser;
    given(choice, "the place for the choice");
    ww_plan_choice found{};
    (given(key, "the key").source != nullptr ? choose_path : choose_way)(chooser, *key, bytes, found);
    *choice = found;
  });
}

int ww_plan_describe(const ww_plan* plan, const char* partner, ww_plan_facts* facts) {
  return guarded([&] {
    const Chooser& chooser = given(plan, "the plan").chooser;
    given(facts, "the place for the facts");
    ww_plan_facts found{};
    write(found.fingerprint, chooser.plan().fingerprint);
    write(found.hash, partner == nullptr ? plan_fingerprint(chooser) : plan_fingerprint(chooser.plan(), partner));
    found.simulated = chooser.plan().simulated ? 1 : 0;
    *facts = found;
  });
}

void ww_plan_free(ww_plan* plan) { delete plan; }

int ww_machine_fingerprint(char* fingerprint, size_t size) {
  return guarded([&] {
    given(fingerprint, "the place for the fingerprint");
    char found[64];
    if (size < sizeof found) throw Error(ErrorKind::invalid_input, "a fingerprint needs 64 characters");
    write(found, waywiser::fingerprint(discover()));
    std::memcpy(fingerprint, found, sizeof found);
  });
}
