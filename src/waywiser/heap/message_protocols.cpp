#include "waywiser/heap/message_protocols.hpp"

#include <algorithm>
#include <iterator>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/message_defaults.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {
namespace {

using one_sided::Protocols;

constexpr Bytes most_in_flags = Bytes{64} << 20;  // an inbox has room for them
constexpr WaysOf of_put_message{"put_message", "gpu"};
constexpr std::uint64_t never = ~std::uint64_t{0};

enum class PutWay { packets, lines, stores, bulk };
constexpr std::string_view way_names[] = {"LL", "LL128", "stores", "bulk"};

std::optional<PutWay> put_way(const Way& way) {
  const auto found = std::ranges::find(way_names, way.name);
  if (found == std::end(way_names) || !way.parameters.empty()) return {};
  return static_cast<PutWay>(found - std::begin(way_names));
}

PutWay way_of(const Protocols& protocols, Bytes bytes) {
  if (bytes <= protocols.packets) return PutWay::packets;
  if (bytes <= protocols.lines) return PutWay::lines;
  return bytes >= protocols.bulk ? PutWay::bulk : PutWay::stores;
}

// A kernel compares a size with three others, so rows in another order than that of PutWay are passed over.
Protocols measured_protocols(const std::vector<PlannedWays<PutWay>::Row>& rows, bool has_lines) {
  Protocols found;
  auto row = rows.begin();
  for (; row != rows.end() && row->way == PutWay::packets; ++row) found.packets = row->planned.to;
  for (; has_lines && row != rows.end() && row->way == PutWay::lines; ++row) found.lines = row->planned.to;
  for (auto last = rows.rbegin(); last != rows.rend() && last->way == PutWay::bulk; ++last)
    found.bulk = last->planned.from;
  for (const auto& each : rows)
    if (each.way == PutWay::lines && !has_lines)
      tell_passed_over(each.planned, of_put_message, "not all GPUs are joined by NVLink");
    else if (each.way != way_of(found, each.planned.to))
      tell_passed_over(each.planned, of_put_message, "a kernel takes LL, above it LL128, stores, then bulk");
  return found;
}

}  // namespace

Protocols message_protocols(const Chooser* chooser, bool has_lines) {
  const PlannedWays<PutWay> planned(chooser, of_put_message, put_way);
  Protocols found;
  if (!planned.rows().empty())
    found = measured_protocols(planned.rows(), has_lines);
  else if (has_lines)
    found = {defaults::heap_packets_beside_lines, defaults::heap_lines, never};
  else
    found = {defaults::heap_packets, 0, never};
  found.packets = std::min<std::uint64_t>(found.packets, most_in_flags);
  found.lines = std::min<std::uint64_t>(found.lines, most_in_flags);
  return found;
}

Protocols only_protocol(std::string_view way) {
  if (const auto kind = put_way(Way{std::string(way)})) switch (*kind) {
      case PutWay::packets: return {most_in_flags, 0, never};
      case PutWay::lines: return {0, most_in_flags, never};
      case PutWay::stores: return {0, 0, never};
      case PutWay::bulk: return {0, 0, 0};
    }
  throw Error(ErrorKind::invalid_input,
              "messages of a heap go by LL, LL128, stores or bulk, not by " + quoted(way, 40));
}

}  // namespace waywiser
