#include "waywiser/heap/message_protocols.hpp"

#include <algorithm>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/message_defaults.hpp"

namespace waywiser {
namespace {

using one_sided::Protocols;

constexpr Bytes most_in_flags = Bytes{64} << 20;  // an inbox has room for them
constexpr std::uint64_t never = ~std::uint64_t{0};

Protocols measured_protocols(const std::vector<const CollectiveRow*>& rows, bool has_lines) {
  Protocols found;
  auto row = rows.begin();
  for (; row != rows.end() && (*row)->way == "LL"; ++row) found.packets = (*row)->to_bytes;
  for (; has_lines && row != rows.end() && (*row)->way == "LL128"; ++row) found.lines = (*row)->to_bytes;
  for (auto last = rows.rbegin(); last != rows.rend() && (*last)->way == "bulk"; ++last)
    found.bulk = (*last)->from_bytes;
  return found;
}

}  // namespace

Protocols message_protocols(const Chooser* chooser, bool has_lines) {
  std::vector<const CollectiveRow*> rows;
  if (chooser != nullptr)
    for (const CollectiveRow& row : chooser->plan().collectives)
      if (row.operation == "put_message" && row.memory == "gpu") rows.push_back(&row);
  std::ranges::sort(rows, {}, &CollectiveRow::from_bytes);
  Protocols found;
  if (!rows.empty())
    found = measured_protocols(rows, has_lines);
  else if (has_lines)
    found = {defaults::heap_packets_beside_lines, defaults::heap_lines, never};
  else
    found = {defaults::heap_packets, 0, never};
  found.packets = std::min<std::uint64_t>(found.packets, most_in_flags);
  found.lines = std::min<std::uint64_t>(found.lines, most_in_flags);
  return found;
}

Protocols only_protocol(std::string_view way) {
  if (way == "LL") return {most_in_flags, 0, never};
  if (way == "LL128") return {0, most_in_flags, never};
  if (way == "stores") return {0, 0, never};
  if (way == "bulk") return {0, 0, 0};
  throw Error(ErrorKind::invalid_input,
              "messages of a heap go by LL, LL128, stores or bulk, not by " + quoted(way, 40));
}

}  // namespace waywiser
