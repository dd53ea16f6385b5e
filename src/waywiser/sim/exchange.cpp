#include "waywiser/sim/exchange.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "waywiser/base/error.hpp"
#include "waywiser/path/path.hpp"
#include "waywiser/sim/models.hpp"
#include "waywiser/sim/request.hpp"
#include "waywiser/sim/runner.hpp"

namespace waywiser::sim {
namespace {

constexpr std::size_t most_transfers = 4096;
constexpr std::int64_t longest_transfer = std::int64_t{1} << 44;

}  // namespace

Json simulate_exchange(const NodeModel& node, const Json& request) {
  World world(node, cluster_from_json(require(request, "cluster", "request"), "cluster"));
  const Json& transfers = require_array(request, "transfers", "request");
  if (transfers.size() > most_transfers) throw Error(ErrorKind::invalid_input, "request: more than 4096 transfers");
  Runner runner(world);
  std::vector<std::size_t> numbers;
  for (const Json& each : transfers) {
    const Path path = path_from_json(require(each, "path", "request"), "request");
    const auto at = [&](const char* key) {
      return static_cast<int>(require_integer(each, key, "request", 0, world.nodes() - 1));
    };
    const Spot from{at("from_node"), text(path.source)}, to{at("to_node"), text(path.destination)};
    const auto bytes = static_cast<Bytes>(require_integer(each, "bytes", "request", 0, longest_transfer));
    numbers.push_back(runner.add(program({world, path, from, to, bytes}), bytes, 1));
  }
  runner.run();
  Seconds last = 0;
  Json ends = Json::array();
  for (const std::size_t number : numbers) {
    ends.push_back(runner.ended(number));
    last = std::max(last, runner.ended(number));
  }
  return {{"simulated", true}, {"seconds", last}, {"ends", std::move(ends)}, {"assumed", to_json(node.assumed())}};
}

}  // namespace waywiser::sim
