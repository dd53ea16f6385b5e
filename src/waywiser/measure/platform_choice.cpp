#include "waywiser/measure/platform_choice.hpp"

#include "waywiser/base/error.hpp"

namespace waywiser {
namespace {

constexpr int most_gpus = 1024, most_nodes = 1024;
constexpr std::int64_t most_memory = std::int64_t{1} << 50;

VirtualMachine machine_from_json(const Json& value, std::string_view what) {
  VirtualMachine machine;
  machine.gpus = static_cast<int>(require_integer(value, "gpus", what, 0, most_gpus));
  machine.host_nodes = static_cast<int>(require_integer(value, "host_nodes", what, 1, most_nodes));
  machine.memory = static_cast<Bytes>(require_integer(value, "memory", what, 0, most_memory));
  machine.dead_gpu = static_cast<int>(require_integer(value, "dead_gpu", what, -1, most_gpus));
  machine.delay = require_number(value, "delay", what);
  for (const Json& row : require_array(value, "no_peer_access", what)) {
    auto& reasons = machine.no_peer_access.emplace_back();
    for (std::size_t i = 0; row.is_array() && i < row.size(); ++i)
      reasons.push_back(row[i].is_string() ? row[i].get<std::string>() : "");
  }
  const auto gpus = static_cast<std::size_t>(machine.gpus);
  bool square = machine.no_peer_access.empty() || machine.no_peer_access.size() == gpus;
  for (const auto& row : machine.no_peer_access) square = square && row.size() == gpus;
  if (!square)
    throw Error(ErrorKind::invalid_input, std::string(what) + ": 'no_peer_access' must be a square of texts");
  return machine;
}

}  // namespace

Json to_json(const PlatformChoice& choice) {
  const VirtualMachine& machine = choice.machine;
  return {{"backend", choice.backend},
          {"machine",
           {{"gpus", machine.gpus},
            {"host_nodes", machine.host_nodes},
            {"memory", machine.memory},
            {"dead_gpu", machine.dead_gpu},
            {"delay", machine.delay},
            {"no_peer_access", machine.no_peer_access}}}};
}

PlatformChoice platform_choice_from_json(const Json& value, std::string_view what) {
  return {require_string(value, "backend", what), machine_from_json(require(value, "machine", what), what)};
}

std::unique_ptr<Platform> open_platform(const PlatformChoice& choice) {
  if (choice.backend == "host") return open_host_platform();
  if (choice.backend == "cuda") return open_cuda_platform();
  if (choice.backend == "virtual_gpu") return open_virtual_platform(choice.machine);
  throw Error(ErrorKind::invalid_input,
              quoted(choice.backend, 40) + " is not a back end: write host, cuda or virtual_gpu");
}

}  // namespace waywiser
