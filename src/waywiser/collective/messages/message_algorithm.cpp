#include "waywiser/collective/messages/message_algorithm.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr std::string_view message_kinds[] = {"LL", "LL128", "bulk"};
constexpr unsigned most_message_blocks = 1024;
const char* const no_nvlink = "not all GPUs are joined by NVLink";

}  // namespace

std::string text(const MessageAlgorithm& algorithm) {
  Way way{std::string(message_kinds[static_cast<std::size_t>(algorithm.kind)])};
  if (algorithm.blocks != 0) way.parameters = {{"blocks", std::to_string(algorithm.blocks)}};
  return text(way);
}

std::optional<MessageAlgorithm> message_algorithm(const Way& way) {
  const auto found = std::ranges::find(message_kinds, way.name);
  if (found == std::end(message_kinds)) return {};
  MessageAlgorithm algorithm{static_cast<messages::Kind>(found - std::begin(message_kinds))};
  const bool is_read = way.has_only({"blocks"}) && way.read("blocks", most_message_blocks, algorithm.blocks);
  return is_read ? std::optional(algorithm) : std::nullopt;
}

MessageAlgorithm default_message_algorithm(Bytes bytes, bool ll128) {
  using messages::Kind;
  if (ll128 && bytes > defaults::messages_ll_beside_ll128 && bytes <= defaults::messages_ll128) return {Kind::ll128};
  return {bytes <= defaults::messages_ll ? Kind::ll : Kind::bulk};
}

MessageAlgorithms::MessageAlgorithms(const Chooser* chooser)
    : planned_(chooser, {"message", "gpu"}, message_algorithm) {}

MessageAlgorithm MessageAlgorithms::of(Bytes bytes, bool ll128) const {
  const auto check = [&](const MessageAlgorithm& algorithm) {
    if (algorithm.blocks > messages::channels)
      throw Error(ErrorKind::invalid_input, "a message by " + text(algorithm) + ": it has " +
                                                std::to_string(messages::channels) + " blocks at most");
    return algorithm;
  };
  if (only_) {
    if (only_->kind == messages::Kind::ll128 && !ll128)
      throw Error(ErrorKind::unavailable, "a message by " + text(*only_) + ": " + no_nvlink);
    return check(*only_);
  }
  const auto may = [&](const MessageAlgorithm& algorithm) { return ll128 || algorithm.kind != messages::Kind::ll128; };
  const auto why_not = [](const MessageAlgorithm&) { return std::string(no_nvlink); };
  if (const MessageAlgorithm* planned = planned_.find(bytes, may, why_not)) return check(*planned);
  return default_message_algorithm(bytes, ll128);
}

namespace messages {

void cut(MessagePart& part, const Layout& layout, const MessageAlgorithm& algorithm) {
  part.kind = algorithm.kind;
  std::uint64_t most = algorithm.blocks != 0 ? algorithm.blocks : std::uint64_t{defaults::messages_blocks};
  if (part.kind == Kind::ll) most = std::min<std::uint64_t>(most, layout.ll_channels);
  const auto share = [&](Bytes unit) { return (part.bytes + most * unit - 1) / (most * unit) * unit; };
  switch (part.kind) {
    case Kind::ll: part.piece = std::clamp<Bytes>(share(256), least_ll_piece, layout.ll_piece); break;
    case Kind::ll128: part.piece = std::min<Bytes>(share(block::data_bytes_of_pair), layout.ll128_piece()); break;
    case Kind::bulk:
      part.piece = std::min<Bytes>(std::max<Bytes>(part.bytes / most / 16 * 16, defaults::messages_bulk_piece),
                                   layout.bulk_piece);
      break;
  }
  part.blocks = static_cast<std::uint32_t>(std::min<Bytes>((part.bytes + part.piece - 1) / part.piece, most));
}

}  // namespace messages
}  // namespace waywiser
