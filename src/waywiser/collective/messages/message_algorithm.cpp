#include "waywiser/collective/messages/message_algorithm.hpp"

#include <algorithm>
#include <charconv>

#include "waywiser/base/error.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

constexpr std::string_view kind_names[] = {"LL", "LL128", "bulk"};
constexpr unsigned most_blocks_in_text = 1024;

}  // namespace

std::string text(const MessageAlgorithm& algorithm) {
  std::string text(kind_names[static_cast<std::size_t>(algorithm.kind)]);
  return algorithm.blocks == 0 ? text : text + "(blocks=" + std::to_string(algorithm.blocks) + ")";
}

std::optional<MessageAlgorithm> parse_message_algorithm(std::string_view text) {
  constexpr std::string_view before = "(blocks=";
  for (const auto kind : {messages::Kind::ll, messages::Kind::ll128, messages::Kind::bulk}) {
    const std::string_view name = kind_names[static_cast<std::size_t>(kind)];
    if (text == name) return MessageAlgorithm{kind};
    if (text.substr(0, text.find('(')) != name) continue;
    text.remove_prefix(name.size());
    if (!text.starts_with(before) || !text.ends_with(')')) return {};
    text = text.substr(before.size(), text.size() - before.size() - 1);
    unsigned blocks = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), blocks);
    if (problem != std::errc() || end != text.data() + text.size() || blocks == 0 || blocks > most_blocks_in_text)
      return {};
    return MessageAlgorithm{kind, blocks};
  }
  return {};
}

MessageAlgorithm default_message_algorithm(Bytes bytes, bool ll128) {
  using messages::Kind;
  if (ll128 && bytes > defaults::messages_ll_beside_ll128 && bytes <= defaults::messages_ll128) return {Kind::ll128};
  return {bytes <= defaults::messages_ll ? Kind::ll : Kind::bulk};
}

MessageAlgorithms::MessageAlgorithms(const Chooser* chooser) {
  if (chooser == nullptr) return;
  for (const CollectiveRow& row : chooser->plan().collectives)
    if (row.operation == "message" && row.memory == "gpu")
      if (const auto algorithm = parse_message_algorithm(row.way))
        rows_.push_back({row.from_bytes, row.to_bytes, *algorithm});
}

MessageAlgorithm MessageAlgorithms::of(Bytes bytes, bool ll128) const {
  const auto check = [&](const MessageAlgorithm& algorithm) {
    if (algorithm.blocks > messages::channels)
      throw Error(ErrorKind::invalid_input, "a message by " + text(algorithm) + ": it has " +
                                                std::to_string(messages::channels) + " blocks at most");
    return algorithm;
  };
  if (only_) {
    if (only_->kind == messages::Kind::ll128 && !ll128)
      throw Error(ErrorKind::unavailable, "a message by " + text(*only_) + ": not all GPUs are joined by NVLink");
    return check(*only_);
  }
  for (const Row& row : rows_)
    if (bytes >= row.from && bytes <= row.to && (ll128 || row.algorithm.kind != messages::Kind::ll128))
      return check(row.algorithm);
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
