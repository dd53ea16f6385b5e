#include "waywiser/comm/message/host_message_sizes.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <limits>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {
namespace {

constexpr WaysOf of_host_message{"message", "host"};

enum class HostWay { lane, ucx, copies };
using Cores = HostMessageSizes::Cores;

std::string no_room() { return "a lane has no room for more than " + format_bytes(longest_short); }
constexpr std::string_view host_way_names[] = {"lane", "ucx", "copies"};

std::optional<HostWay> host_way(const Way& way) {
  const auto found = std::ranges::find(host_way_names, way.name);
  if (found == std::end(host_way_names) || !way.parameters.empty()) return {};
  return static_cast<HostWay>(found - std::begin(host_way_names));
}

HostWay way_of(const HostMessageSizes& sizes, Bytes bytes) {
  if (bytes <= sizes.lane) return HostWay::lane;
  return bytes <= sizes.ucx ? HostWay::ucx : HostWay::copies;
}

}  // namespace

void HostMessageSizes::tell_copies() noexcept {
  cores = Cores::close;
  std::fputs(
      "waywiser: message of host arrays: ucx, which the plan has, does not run: the cores of two ranks are far "
      "apart, so both copy\n",
      stderr);
}

std::span<const std::string_view> host_message_ways() { return host_way_names; }

std::optional<HostMessageSizes> only_host_way(std::string_view way, std::size_t bytes) {
  const auto known = host_way(Way{std::string(way)});
  if (!known) return {};
  if (known != HostWay::lane)
    return HostMessageSizes{0, known == HostWay::ucx ? std::numeric_limits<std::size_t>::max() : 0, Cores::any};
  if (bytes > longest_short) throw Error(ErrorKind::unavailable, no_room());
  return HostMessageSizes{longest_short, 0};
}

// Both ends compare a size with two others, so rows in another order than that of HostWay are passed over.
HostMessageSizes host_message_sizes(const Chooser* chooser, std::size_t ucx_copies) {
  const PlannedWays<HostWay> planned(chooser, of_host_message, host_way);
  if (planned.rows().empty()) return {longest_short, ucx_copies};
  HostMessageSizes found{0, 0, Cores::told};
  auto row = planned.rows().begin();
  const auto end = planned.rows().end();
  for (; row != end && row->way == HostWay::lane; ++row) found.lane = std::min<Bytes>(row->planned.to, longest_short);
  for (; row != end && row->way == HostWay::ucx; ++row) found.ucx = row->planned.to;
  for (const auto& each : planned.rows())
    if (each.way != way_of(found, std::max<Bytes>(each.planned.from, 1)))  // a lane takes what has no bytes
      tell_passed_over(each.planned, of_host_message,
                       each.way == HostWay::lane && each.planned.from > longest_short
                           ? no_room()
                           : "a group takes lane, above it ucx, then copies");
  return found;
}

}  // namespace waywiser
