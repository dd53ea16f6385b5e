#include "waywiser/sim/request.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser::sim {
namespace {

constexpr std::size_t most_sizes = 256, most_paths = 1024;
constexpr std::int64_t largest = std::int64_t{1} << 44;

int integer_or(const Json& value, std::string_view key, int fallback, int least, int most, std::string_view what) {
  return value.contains(key) ? static_cast<int>(require_integer(value, key, what, least, most)) : fallback;
}

std::vector<SickLink> sick_links(const Json& value, std::string_view what) {
  std::vector<SickLink> found;
  if (!value.contains("sick")) return found;
  for (const Json& entry : require_array(value, "sick", what)) {
    const auto index = require_integer(entry, "index", what, 0, 1 << 30);
    const double share = require_number(entry, "share", what);
    if (share < 0 || share > 1)
      throw Error(ErrorKind::invalid_input, std::string(what) + ": 'share' of a sick link is from 0 (failed) to 1");
    found.push_back({static_cast<std::size_t>(index), share});
  }
  return found;
}

struct Wanted {
  Path path;
  int from_node = 0, to_node = 0;
  std::vector<Bytes> sizes;  // empty: those of the request
  std::optional<Operation> only;
  std::vector<std::pair<Spot, Spot>> pairs;  // of `loaded`
};

std::vector<Bytes> sizes_of(const Json& request) {
  std::vector<Bytes> sizes;
  for (const Json& size : require_array(request, "sizes", "request")) {
    if (!size.is_number_integer() || size.get<std::int64_t>() < 0 || size.get<std::int64_t>() > largest)
      throw Error(ErrorKind::invalid_input, "request: a size is a number of bytes from 0 to 16 TiB");
    sizes.push_back(size.get<Bytes>());
  }
  if (sizes.size() > most_sizes) throw Error(ErrorKind::invalid_input, "request: more than 256 sizes");
  return sizes;
}

Wanted wanted_one(const Json& entry, int nodes) {
  Wanted one{path_from_json(require(entry, "path", "request"), "request"),
             integer_or(entry, "from_node", 0, 0, nodes - 1, "request"),
             integer_or(entry, "to_node", 0, 0, nodes - 1, "request"),
             {},
             {},
             {}};
  if (entry.contains("sizes")) one.sizes = sizes_of(entry);
  if (entry.contains("operation")) one.only = parse_operation(require_string(entry, "operation", "request"));
  if (!entry.contains("pairs")) return one;
  for (const Json& pair : require_array(entry, "pairs", "request")) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_string())
      throw Error(ErrorKind::invalid_input, "request: a pair is a list of two places");
    const Place source = parse_place(pair[0].get<std::string>()), target = parse_place(pair[1].get<std::string>());
    one.pairs.push_back({{one.from_node, text(source)}, {one.to_node, text(target)}});
  }
  return one;
}

std::vector<Wanted> wanted(const Json& request, int nodes) {
  std::vector<Wanted> found;
  const Json& paths = require_array(request, "paths", "request");
  if (paths.size() > most_paths) throw Error(ErrorKind::invalid_input, "request: more than 1024 paths");
  for (const Json& entry : paths) found.push_back(wanted_one(entry, nodes));
  return found;
}

class Sweep {
 public:
  Sweep(const NodeModel& node, ClusterSpec cluster, const Json& request, const ProgressCallback& progress)
      : node_(node), cluster_(std::move(cluster)), progress_(progress), sizes_(sizes_of(request)) {
    tracing_ = request.contains("trace") && request.at("trace") == true;
  }

  Json one(const Wanted& what, Operation operation) {
    const Spot from{what.from_node, text(what.path.source)}, to{what.to_node, text(what.path.destination)};
    TimedTrial trial{what.path, from, to, operation, 0, what.pairs};
    const std::vector<Bytes>& sizes = what.sizes.empty() ? sizes_ : what.sizes;
    Json result{{"path", to_json(what.path)}, {"label", label(what.path)}, {"operation", name(operation)}};
    Json points = Json::array();
    try {
      for (const Bytes bytes : sizes) {
        if (!keep_on(label(what.path) + " " + format_bytes(bytes))) break;
        trial.bytes = bytes;
        Trace trace;
        trace.title = label(what.path) + " " + format_bytes(bytes);
        const bool traced = tracing_ && bytes == sizes.back();
        const Timed timed = simulate(node_, cluster_, trial, traced ? &trace : nullptr);
        points.push_back({{"bytes", bytes}, {"seconds", timed.seconds}, {"cpu_seconds", timed.cpu_seconds}});
        if (traced) result["trace"] = chrome_trace(trace);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) throw;
      result["unavailable"] = error.what();
    }
    result["points"] = std::move(points);
    return result;
  }

  void expect(std::size_t cases) { total_ = static_cast<int>(cases * sizes_.size()); }

 private:
  bool keep_on(const std::string& what) {
    Progress told;
    told.done = done_++;
    told.total = total_;
    told.label = what;
    return !progress_ || progress_(told);
  }

  const NodeModel& node_;
  ClusterSpec cluster_;
  const ProgressCallback& progress_;
  std::vector<Bytes> sizes_;
  bool tracing_ = false;
  int done_ = 0, total_ = 0;
};

}  // namespace

ClusterSpec cluster_from_json(const Json& value, std::string_view what) {
  ClusterSpec spec;
  spec.network.nodes = integer_or(value, "nodes", 1, 1, most_nodes, what);
  if (value.contains("kind")) spec.network.kind = require_string(value, "kind", what);
  spec.network.radix = integer_or(value, "radix", spec.network.radix, 4, 1024, what);
  if (value.contains("taper")) spec.network.taper = require_number(value, "taper", what);
  if (value.contains("port_rate")) spec.network.port_rate = require_number(value, "port_rate", what);
  if (value.contains("shape"))
    for (const Json& size : require_array(value, "shape", what)) {
      if (!size.is_number_integer() || size.get<std::int64_t>() < 1 || size.get<std::int64_t>() > most_nodes)
        throw Error(ErrorKind::invalid_input,
                    std::string(what) + ": 'shape' must be a list of numbers from 1 to 100000");
      spec.network.shape.push_back(size.get<int>());
    }
  spec.network.sick = sick_links(value, what);
  spec.network.adaptive = value.contains("adaptive") && value.at("adaptive") == true;
  if (value.contains("places"))
    for (const Json& place : require_array(value, "places", what)) {
      if (!place.is_number_integer() || place.get<std::int64_t>() < 0 || place.get<std::int64_t>() >= most_nodes)
        throw Error(ErrorKind::invalid_input, std::string(what) + ": 'places' must be a list of numbers from 0 on");
      spec.places.push_back(place.get<int>());
    }
  if (value.contains("types"))
    for (const Json& type : require_array(value, "types", what)) {
      if (!type.is_number_integer() || type.get<std::int64_t>() < 0 || type.get<std::int64_t>() >= most_nodes)
        throw Error(ErrorKind::invalid_input, std::string(what) + ": 'types' must be a list of numbers from 0 on");
      spec.types.push_back(type.get<int>());
    }
  spec.nvlink_domain = integer_or(value, "nvlink_domain", 0, 0, 1 << 20, what);
  if (value.contains("in_network_reduction")) spec.in_network_reduction = value.at("in_network_reduction") == true;
  if (value.contains("rdma_only")) spec.rdma_only = value.at("rdma_only") == true;
  return spec;
}

Json simulate_paths(const NodeModel& node, const std::vector<const NodeModel*>& others, const Json& request,
                    const ProgressCallback& progress) {
  ClusterSpec cluster = cluster_from_json(require(request, "cluster", "request"), "cluster");
  cluster.others = others;
  const std::vector<Wanted> paths = wanted(request, cluster.network.nodes);
  const Json& operations = require_array(request, "operations", "request");
  Sweep sweep(node, cluster, request, progress);
  sweep.expect(paths.size() * operations.size());
  Json results = Json::array();
  for (const Json& operation : operations)
    for (const Wanted& what : paths)
      if (const Operation asked = parse_operation(operation.is_string() ? operation.get<std::string>() : "?");
          !what.only || *what.only == asked)
        results.push_back(sweep.one(what, asked));
  Assumptions assumed = node.assumed();
  for (const NodeModel* other : others) assumed.merge(other->assumed());
  return {{"simulated", true},
          {"machine", node.topology().name},
          {"assumed", to_json(assumed)},
          {"results", std::move(results)}};
}

}  // namespace waywiser::sim
