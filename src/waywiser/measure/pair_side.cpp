#include "waywiser/measure/pair_side.hpp"

#include "waywiser/base/error.hpp"
#include "waywiser/measure/disturbance.hpp"

namespace waywiser {
namespace {

constexpr std::string_view pair_command = "command to the peer process";
constexpr std::int64_t largest_transfer = std::int64_t{1} << 40;
constexpr std::int64_t most_repetitions = 100'000'000;

Path path_of(const Json& command) { return path_from_json(require(command, "path", pair_command), pair_command); }

SpinCpus spin_cpus_from_json(const Json& value, std::string_view source) {
  const auto cpu = [](const Json& entry) {
    return entry.is_number_integer() && entry >= -1 && entry < CPU_SETSIZE ? entry.get<int>() : -2;
  };
  if (value.size() != 2 || cpu(value[0]) == -2 || cpu(value[1]) == -2)
    throw Error(ErrorKind::invalid_input, std::string(source) + ": 'spin_cpus' must be two CPUs");
  return {cpu(value[0]), cpu(value[1])};
}

Json to_json(const PairResult& result) {
  return {{"began", result.began},           {"seconds", result.seconds}, {"cpu_seconds", result.cpu_seconds},
          {"mismatches", result.mismatches}, {"each", result.each},       {"disturbed", result.disturbed}};
}

}  // namespace

std::string connection_key(const Path& path) { return pair_text(path) + " " + label(path); }

Json to_json(const PairRun& run) {
  return {{"operation", name(run.operation)},
          {"bytes", run.bytes},
          {"repetitions", run.repetitions},
          {"seed", run.seed},
          {"first", run.first},
          {"spin_cpus", {run.spin_cpus.source, run.spin_cpus.destination}}};
}

PairRun pair_run_from_json(const Json& value, std::string_view source) {
  PairRun run;
  run.operation = parse_operation(require_string(value, "operation", source));
  run.bytes = static_cast<Bytes>(require_integer(value, "bytes", source, 0, largest_transfer));
  run.repetitions = static_cast<int>(require_integer(value, "repetitions", source, 1, most_repetitions));
  run.seed = static_cast<std::uint64_t>(require_integer(value, "seed", source, 0, INT64_MAX));
  run.first = static_cast<Bytes>(require_integer(value, "first", source, 0, INT64_MAX));
  run.spin_cpus = spin_cpus_from_json(require_array(value, "spin_cpus", source), source);
  return run;
}

PairResult pair_result_from_json(const Json& value, std::string_view source) {
  PairResult result{require_number(value, "began", source),
                    require_number(value, "seconds", source),
                    require_number(value, "cpu_seconds", source),
                    static_cast<Bytes>(require_integer(value, "mismatches", source, 0, INT64_MAX)),
                    {}};
  for (const Json& each : require_array(value, "each", source))
    if (each.is_number()) result.each.push_back(each.get<Seconds>());
  result.disturbed = require_string(value, "disturbed", source).substr(0, 80);
  return result;
}

Json PairSide::perform(const Json& command, Deadline deadline, const Release& release) {
  const std::string verb = require_string(command, "do", pair_command);
  if (verb == "run") return run(command, deadline, release);
  if (verb == "first_use") return first_use(path_of(command), deadline);
  if (verb == "why_unavailable") {
    const auto why = waywiser::why_unavailable(outgoing_path(path_of(command), role_), {platform_, &channel_});
    return {{"why", why ? Json(*why) : Json(nullptr)}};
  }
  if (verb == "buffers") {
    make_buffers(command, deadline);
  } else if (verb == "free") {
    buffers_.clear();
  } else if (verb == "open") {
    const Path path = path_of(command);
    connections_[connection_key(path)] = std::make_unique<PairConnection>(platform_, path, role_, channel_, flags_);
  } else if (verb == "close") {
    connections_.erase(require_string(command, "connection", pair_command));
  } else {
    throw Error(ErrorKind::invalid_input, std::string(pair_command) + ": unknown command " + quoted(verb, 40));
  }
  return Json::object();
}

void PairSide::make_buffers(const Json& command, Deadline deadline) {
  const Path path = path_of(command);
  const auto bytes = static_cast<Bytes>(require_integer(command, "bytes", pair_command, 1, largest_transfer));
  const std::string key = buffers_key(path);
  buffers_.erase(key);
  const auto [entry, unused] = buffers_.emplace(key, PairBuffers(platform_, path, role_, bytes, deadline));
  entry->second.share(channel_, deadline);
}

Json PairSide::run(const Json& command, Deadline deadline, const Release& release) {
  const Path path = path_of(command);
  const PairRun run = pair_run_from_json(command, pair_command);
  const auto connection = connections_.find(connection_key(path));
  const auto buffers = buffers_.find(buffers_key(path));
  if (connection == connections_.end() || buffers == buffers_.end() || buffers->second.capacity() < run.capacity())
    throw Error(ErrorKind::invalid_input, std::string(pair_command) + ": run before its path and buffers are open");
  const Disturbance disturbance;
  PairResult result = connection->second->run(buffers->second, run, deadline, release);
  result.disturbed = disturbance.disturbed();
  return to_json(result);
}

// Opening, sharing the memory and the first 8 bytes, but not the allocation.
Json PairSide::first_use(const Path& path, Deadline deadline) {
  const PairRun once{Operation::latency, 8, 1, 0};
  PairBuffers buffers(platform_, path, role_, once.capacity(), deadline);
  channel_.exchange({{"ready", true}}, deadline);
  const Seconds before = now_seconds();
  PairConnection connection(platform_, path, role_, channel_, flags_);
  buffers.share(channel_, deadline);
  PairResult result = connection.run(buffers, once, deadline);
  result.seconds = now_seconds() - before;
  return to_json(result);
}

}  // namespace waywiser
