#include "waywiser/comm/message/tag.hpp"

namespace waywiser {
namespace {

std::string described(Tag tag) {
  const auto kind = tag >> 15 & 0x1f;
  static_assert(data_types <= 16 && reduce_ops <= 16);
  const auto type = tag >> 11 & 0xf;
  const auto op = tag >> root_bits & 0xf;
  if (kind >= call_kinds || type >= data_types || op >= reduce_ops) return "an unknown call";
  std::string text =
      std::string(name(static_cast<CallKind>(kind))) + " of " + std::string(name(static_cast<DataType>(type)));
  if (!is_collective(static_cast<CallKind>(kind))) return text;
  text += ", " + std::string(name(static_cast<ReduceOp>(op)));
  return has_root(static_cast<CallKind>(kind)) ? text + ", root " + std::to_string(tag & root_mask) : text;
}

}  // namespace

std::string why_unlike(const Received& info, Tag expected, std::size_t bytes, int source) {
  const std::string who = "rank " + std::to_string(source);
  if (is_head(info.tag))
    return who + " sent a longer message, by rails, where " + std::to_string(bytes) + " bytes were expected";
  if ((info.tag ^ expected) >> root_bits == 0 && info.tag != expected &&
      !has_root(static_cast<CallKind>(expected >> 15 & 0x1f)))
    return who + " sent this message in a group that no longer exists, where it was not received";
  if (info.tag != expected) return who + " is in " + described(info.tag);
  return who + " sent " + std::to_string(info.bytes) + " bytes where " + std::to_string(bytes) + " were expected";
}

}  // namespace waywiser
