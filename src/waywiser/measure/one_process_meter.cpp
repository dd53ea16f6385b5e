#include "waywiser/measure/one_process_meter.hpp"

#include <algorithm>
#include <ctime>

#include "waywiser/base/error.hpp"
#include "waywiser/base/timeout.hpp"
#include "waywiser/measure/pair_class.hpp"
#include "waywiser/measure/path_limit.hpp"
#include "waywiser/measure/rotation.hpp"

namespace waywiser {
namespace {

Seconds cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void one_by_one(PathConnection& connection, int repetitions, Deadline deadline) {
  for (int i = 0; i < repetitions; ++i) {
    connection.transport->put(connection.destinations[0], connection.sources[0], *connection.stream);
    connection.transport->finish(*connection.stream, deadline);
  }
}

Sample take_singly(PathConnection& connection, int before, int repetitions, Deadline deadline) {
  one_by_one(connection, before, deadline);
  Sample sample;
  const Seconds start = now_seconds();
  if (repetitions > most_timed_singly) {
    one_by_one(connection, repetitions, deadline);
    sample.seconds = (now_seconds() - start) / repetitions;
    return sample;
  }
  sample.each.reserve(static_cast<std::size_t>(repetitions));
  Seconds last = start;
  for (int i = 0; i < repetitions; ++i) {
    one_by_one(connection, 1, deadline);
    const Seconds now = now_seconds();
    sample.each.push_back(now - last);
    last = now;
  }
  sample.seconds = (last - start) / repetitions;
  return sample;
}

void in_windows(PathConnection& connection, int repetitions, int in_flight, Deadline deadline) {
  const std::size_t slots = connection.sources.size();
  std::size_t slot = *connection.next % slots;
  for (int i = 0; i < repetitions; ++i) {
    connection.transport->put(connection.destinations[slot], connection.sources[slot], *connection.stream);
    if (++slot == slots) slot = 0;
    if ((i + 1) % in_flight == 0) connection.transport->finish(*connection.stream, deadline);
  }
  connection.transport->finish(*connection.stream, deadline);
  *connection.next = slot;
}

}  // namespace

OneProcessMeter::OneProcessMeter(Platform& platform, const Topology& topology, std::vector<PairClass> classes)
    : platform_(platform), topology_(topology), classes_(std::move(classes)), store_(platform) {}

std::optional<std::string> OneProcessMeter::why_unavailable(const Path& path) {
  return waywiser::why_unavailable(path, TransportContext{platform_});
}

std::vector<OneProcessMeter::Numbered> OneProcessMeter::together(const Path& path, Operation operation) const {
  std::vector<Numbered> all = {{path, 0}};
  if (operation == Operation::bidirectional)
    all.push_back({for_pair(path, path.destination, path.source), path.source == path.destination ? 1 : 0});
  const PairClass* pairs = operation == Operation::loaded ? class_of(classes_, path) : nullptr;
  if (pairs != nullptr)
    for (const auto& [source, destination] : pairs->members)
      if (source != path.source || destination != path.destination)
        all.push_back({for_pair(path, source, destination), 0});
  return all;
}

Bytes OneProcessMeter::largest(const Path& path) const {
  std::map<Place, Bytes> bidirectional, loaded;
  const auto count = [&](std::map<Place, Bytes>& ends, Operation operation) {
    for (const Numbered& entry : together(path, operation)) {
      ++ends[entry.path.source];
      ++ends[entry.path.destination];
    }
  };
  count(bidirectional, Operation::bidirectional);
  count(loaded, Operation::loaded);
  Bytes most = Bytes{1} << 62;
  for (const auto* ends : {&bidirectional, &loaded})
    for (const auto& [place, number] : *ends) most = std::min(most, store_.half_of_free(place) / number);
  return most;
}

int OneProcessMeter::pairs_at_once(const Path& path) const {
  return static_cast<int>(together(path, Operation::loaded).size());
}

Limit OneProcessMeter::limit(const Path& path, Operation) const {
  const std::string key = pair_text(path) + " " + label(path);
  const auto known = limits_.find(key);
  return known != limits_.end() ? known->second : limits_[key] = path_limit(topology_, path);
}

std::vector<PathConnection*> OneProcessMeter::connections(const std::vector<Numbered>& all, Bytes bytes, int slots) {
  for (int attempt = 0; attempt < 2; ++attempt)  // the last one may have released the first one's
    for (const Numbered& entry : all) store_.prepare(entry.path, entry.number, bytes, slots);
  for (const Numbered& entry : all)
    if (!store_.ready(entry.path, entry.number, bytes, slots))
      throw Error(ErrorKind::unavailable, "half of the free memory is too little for " + std::to_string(all.size()) +
                                              " transfers of " + format_bytes(bytes) + " at once");
  std::vector<PathConnection*> found;
  for (const Numbered& entry : all) found.push_back(&store_.connection(entry.path, entry.number, bytes, slots));
  return found;
}

std::optional<std::string> OneProcessMeter::verify(const Path& path, Operation operation, Bytes bytes) {
  try {
    return try_verify(path, operation, bytes);
  } catch (...) {
    store_.close_connections();  // one of them may hold work that never ends
    throw;
  }
}

Sample OneProcessMeter::take(const Path& path, Operation operation, Bytes bytes, int repetitions) {
  try {
    return try_take(path, operation, bytes, repetitions);
  } catch (...) {
    store_.close_connections();
    throw;
  }
}

std::optional<std::string> OneProcessMeter::try_verify(const Path& path, Operation operation, Bytes bytes) {
  const std::vector<Numbered> all = together(path, operation);
  const std::vector<PathConnection*> opened = connections(all, bytes, 1);
  for (std::size_t i = 0; i < all.size(); ++i)
    store_.fill_destination(all[i].path, all[i].number, opened[i]->destinations[0], ~opened[i]->seed);
  for (PathConnection* connection : opened)
    connection->transport->put(connection->destinations[0], connection->sources[0], *connection->stream);
  for (PathConnection* connection : opened)
    connection->transport->finish(*connection->stream, Deadline::in(usual_timeout()));
  for (PathConnection* connection : opened) connection->transport->rest();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Bytes wrong = store_.mismatches(all[i].path, all[i].number, opened[i]->destinations[0], opened[i]->seed);
    if (wrong != 0)
      return std::to_string(wrong) + " of " + std::to_string(bytes) + " bytes arrived wrong (" +
             pair_text(all[i].path) + ")";
  }
  return {};
}

Sample OneProcessMeter::try_take(const Path& path, Operation operation, Bytes bytes, int repetitions) {
  const Rotation in_flight = rotation(operation, slot_stride(bytes));
  const std::vector<PathConnection*> opened = connections(together(path, operation), bytes, in_flight.slots);
  const Deadline deadline = Deadline::in(usual_timeout());
  const bool singly = operation == Operation::latency;
  if (!singly) repetitions = std::max(repetitions, at_least_in_flight(in_flight, bytes));
  const int before = warm_up(repetitions, bytes);
  const Seconds cpu_before = cpu_seconds();
  Sample sample;
  if (singly) {
    sample = take_singly(*opened[0], before, repetitions, deadline);
  } else {
    const auto move = [&](int count) {
      return [&, count](int member) {
        in_windows(*opened[static_cast<std::size_t>(member)], count, in_flight.transfers, deadline);
      };
    };
    sample.seconds = threads_.run(static_cast<int>(opened.size()), move(repetitions), move(before)) / repetitions;
  }
  sample.cpu_seconds = (cpu_seconds() - cpu_before) / (before + repetitions) / static_cast<double>(opened.size());
  for (PathConnection* connection : opened) connection->transport->rest();
  return sample;
}

Seconds OneProcessMeter::first_use(const Path& path) {
  constexpr Bytes few = 8;
  store_.prepare(path, 0, few, 1);
  const Seconds start = now_seconds();
  PathConnection connection = store_.open_fresh(path, few);
  connection.transport->put(connection.destinations[0], connection.sources[0], *connection.stream);
  connection.transport->finish(*connection.stream, Deadline::in(usual_timeout()));
  return now_seconds() - start;
}

}  // namespace waywiser
