#include "waywiser/sim/collective_request.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/sim/collective_run.hpp"
#include "waywiser/sim/request.hpp"

namespace waywiser::sim {
namespace {

constexpr std::int64_t most_bytes = std::int64_t{1} << 44, most_ranks = 1 << 20;

DirectRdma parse_direct(const std::string& text) {
  if (text == "off") return DirectRdma::off;
  if (text == "on") return DirectRdma::on;
  if (text == "best") return DirectRdma::best;
  if (text == "near") return DirectRdma::near;
  if (text == "write") return DirectRdma::write;
  throw Error(ErrorKind::invalid_input, "request: 'direct' must be off, on, near, write or best");
}

Bytes bytes_or_none(const Json& value, std::string_view key) {
  return value.contains(key) ? static_cast<Bytes>(require_integer(value, key, "request", 0, most_bytes)) : 0;
}

std::vector<std::string> gpus_of(const Json& values) {
  std::vector<std::string> gpus;
  for (const Json& gpu : values) gpus.push_back(gpu.is_string() ? gpu.get<std::string>() : "");
  return gpus;
}

// What "nccl" has chosen, and between what.
Json chosen(const Ran& ran) {
  Json tried = Json::array();
  for (const NcclTried& one : ran.tried) {
    Json row{{"algorithm", one.algorithm}, {"protocol", one.protocol}};
    if (one.why_not.empty()) {
      row["seconds"] = one.seconds;
      row["reckoned"] = one.reckoned;
    } else {
      row["unavailable"] = one.why_not;
    }
    tried.push_back(std::move(row));
  }
  return {{"algorithm", ran.algorithm}, {"protocol", ran.protocol}, {"tried", std::move(tried)}};
}

CollectiveTrial trial_of(const Json& value) {
  CollectiveTrial trial;
  trial.operation = parse_collective(require_string(value, "operation", "request"));
  trial.algorithm = require_string(value, "algorithm", "request");
  if (value.contains("ranks"))
    trial.ranks = static_cast<int>(require_integer(value, "ranks", "request", 0, most_ranks));
  trial.bytes = bytes_or_none(value, "bytes");
  trial.chunk = bytes_or_none(value, "chunk");
  trial.job_bytes = bytes_or_none(value, "job_bytes");
  trial.endless_job = value.contains("endless_job") && value.at("endless_job") == true;
  if (value.contains("order")) trial.order = gpus_of(require_array(value, "order", "request"));
  if (value.contains("groups"))
    for (const Json& group : require_array(value, "groups", "request"))
      trial.groups.push_back(group.is_array() ? gpus_of(group) : std::vector<std::string>());
  if (value.contains("protocol")) trial.protocol = require_string(value, "protocol", "request");
  trial.pxn = value.contains("pxn") && value.at("pxn") == true;
  if (value.contains("nodes"))
    trial.nodes = static_cast<int>(require_integer(value, "nodes", "request", 1, most_nodes));
  if (value.contains("beside"))
    trial.beside = std::make_shared<const CollectiveTrial>(trial_of(require(value, "beside", "request")));
  if (value.contains("direct")) trial.direct = parse_direct(require_string(value, "direct", "request"));
  return trial;
}

Json one(const NodeModel& node, const std::vector<const NodeModel*>& others, const Json& entry, bool traced) {
  const CollectiveTrial trial = trial_of(entry);
  Trace trace;
  trace.title = std::string(name(trial.operation)) + " " + trial.algorithm + " " + format_bytes(trial.bytes);
  try {
    ClusterSpec cluster = cluster_from_json(require(entry, "cluster", "request"), "cluster");
    cluster.others = others;
    const Ran ran = simulate(node, cluster, trial, traced ? &trace : nullptr);
    Json result{{"seconds", ran.seconds},
                {"messages", ran.messages},
                {"rounds", ran.rounds},
                {"rounds_run", ran.rounds_run},
                {"bytes", ran.bytes}};
    if (!ran.tried.empty()) result["chosen"] = chosen(ran);
    if (traced) result["trace"] = chrome_trace(trace);
    return result;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unavailable) throw;
    return {{"unavailable", error.what()}};
  }
}

}  // namespace

Json simulate_collectives(const NodeModel& node, const std::vector<const NodeModel*>& others, const Json& request,
                          const ProgressCallback& progress) {
  const Json& trials = require_array(request, "trials", "request");
  const bool traced = request.contains("trace") && request.at("trace") == true;
  Json results = Json::array();
  for (const Json& entry : trials) {
    Progress told;
    told.done = static_cast<int>(results.size());
    told.total = static_cast<int>(trials.size());
    told.label = require_string(entry, "algorithm", "request");
    if (progress && !progress(told)) break;
    results.push_back(one(node, others, entry, traced && &entry == &trials.back()));
  }
  Assumptions assumed = node.assumed();
  for (const NodeModel* other : others) assumed.merge(other->assumed());
  return {{"simulated", true},
          {"machine", node.topology().name},
          {"assumed", to_json(assumed)},
          {"results", std::move(results)}};
}

}  // namespace waywiser::sim
