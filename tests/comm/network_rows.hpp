#pragma once

// Plans of the road between two machines.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/policy/made_up_rows.hpp"
#include "waywiser/policy/chooser.hpp"

namespace waywiser {

using Parameters = std::map<std::string, std::string>;

inline Path network_path(const std::string& mechanism, Place source, Place destination, Parameters parameters) {
  parameters.insert({{"transports", "network-tcp"}, {"device", "lo"}});
  return {mechanism, source, seen_from_other(destination), 2, std::move(parameters)};
}

inline PlanRow row_of_path(const Path& path, Bytes from, Bytes to) { return made_up::message_row({path}, from, to); }

inline std::shared_ptr<const Chooser> plan_of_rows(std::vector<PlanRow> rows) {
  Plan plan;
  plan.rows = std::move(rows);
  return std::make_shared<const Chooser>(std::move(plan));
}

// Long messages between hosts, by two rails.
inline std::vector<PlanRow> host_rows() {
  const Path one = network_path("ucx", host(0), host(0), {});
  const Path two = network_path("ucx", host(0), host(0), {{"device", "lo+lo"}, {"share", "75+25"}});
  return {row_of_path(one, 0, 99999), row_of_path(two, 100000, no_end)};
}

inline std::vector<PlanRow> with_gpu_row(const std::string& mechanism, const Parameters& parameters) {
  std::vector<PlanRow> rows = host_rows();
  rows.push_back(row_of_path(network_path(mechanism, gpu(0), gpu(0), parameters), 0, no_end));
  return rows;
}

// Node types: the plan was made on the first.
constexpr const char* first_node = "000000000000000a";
constexpr const char* second_node = "000000000000000b";
constexpr const char* third_node = "000000000000000c";
constexpr const char* unknown_node = "000000000000000d";

inline PlanRow row_to(const std::string& node, Place here, Place there, const Parameters& parameters) {
  Path path = network_path("ucx_staged", here, there, parameters);
  path.destination = on_node(node_type(node), there);
  return row_of_path(path, 0, no_end);
}

inline Parameters chunks_of(const std::string& chunk) {
  return {{"variant", "pipelined"}, {"chunk", chunk}, {"depth", "2"}};
}

// Rows to the second type come before those to the first: the choice must not depend on the order.
inline std::shared_ptr<const Chooser> plan_of_types() {
  Plan plan;
  plan.fingerprint = first_node;
  plan.rows = {
      row_to(second_node, gpu(0), gpu(0), chunks_of("64K")), row_to(second_node, gpu(1), gpu(0), chunks_of("32K")),
      row_to(second_node, gpu(0), gpu(1), chunks_of("16K")), row_to(third_node, gpu(0), gpu(0), chunks_of("8K")),
      row_to(first_node, gpu(0), gpu(0), {{"variant", "pageable"}})};
  return std::make_shared<const Chooser>(std::move(plan));
}

}  // namespace waywiser
