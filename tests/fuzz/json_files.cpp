// JSON files: machines, profiles and plans.
#include <algorithm>

#include "tests/fuzz/targets.hpp"
#include "waywiser/measure/profile.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/topology/placement.hpp"
#include "waywiser/topology/relation.hpp"

namespace waywiser::fuzz {
namespace {

constexpr std::size_t few = 4;

// A value is the same after it has been written and read again.
template <typename Value>
void promise_the_same(const Value& value, Value (*read)(const Json&, std::string_view)) {
  const std::string written = to_json(value).dump();
  promise(to_json(read(parse_json(written, "written"), "written")).dump() == written, "changed by writing: " + written);
}

void look_rows_up(const Chooser& chooser) {
  for (const PlanRow& row : chooser.plan().rows) {
    if (!row.key.is_message()) continue;
    const PlanKey& key = row.key;
    const auto [source, destination] = key.pairs.front();
    const PlanRow* found = chooser.choose(source, destination, key.processes, parse_operation(key.operation),
                                          row.from_bytes, key.rail, key.encrypted);
    promise(found == &row, "a row is not found at its first size");
    Chooser::path_for(row, source, destination);
  }
}

}  // namespace

void topology_json(Bytes input) {
  reads_or_refuses([&] {
    const Topology machine = topology_from_json(parse_json(text_of(input), "file"), "file");
    promise_the_same(machine, topology_from_json);
    if (machine.devices.size() > 64) return;  // quick ones find more
    matrix(machine);
    const std::size_t gpus = std::min(machine.ids("gpu").size(), few);
    if (gpus > 0) place_gpus(machine, static_cast<int>(gpus), true);
  });
}

void profile_json(Bytes input) {
  reads_or_refuses(
      [&] { promise_the_same(profile_from_json(parse_json(text_of(input), "file"), "file"), profile_from_json); });
}

void plan_json(Bytes input) {
  reads_or_refuses([&] {
    const Plan plan = plan_from_json(parse_json(text_of(input), "file"), "file");
    promise_the_same(plan, plan_from_json);
    look_rows_up(Chooser(plan));
  });
}

}  // namespace waywiser::fuzz
