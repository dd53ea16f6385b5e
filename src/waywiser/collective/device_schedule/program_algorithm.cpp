#include "waywiser/collective/device_schedule/program_algorithm.hpp"

#include <algorithm>
#include <charconv>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/policy/chooser.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

using Kind = ProgramAlgorithm::Kind;

constexpr std::string_view kind_names[] = {"LL", "LL128", "bulk", "direct"};
constexpr Bytes least_piece = 256, most_piece = Bytes{1} << 30, piece_unit = 16;
constexpr unsigned most_blocks_in_text = 1024;

bool read_piece(std::string_view text, Bytes& piece) {
  try {
    piece = parse_bytes(text);
  } catch (const Error&) {
    return false;
  }
  return piece >= least_piece && piece <= most_piece && piece % piece_unit == 0;
}

bool read_blocks(std::string_view text, unsigned& blocks) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  return problem == std::errc() && end == text.data() + text.size() && blocks != 0 && blocks <= most_blocks_in_text;
}

// "piece=64K,blocks=16", "piece=64K" or "blocks=16".
bool read_parameters(std::string_view text, ProgramAlgorithm& algorithm) {
  constexpr std::string_view piece = "piece=", blocks = "blocks=";
  if (text.starts_with(piece)) {
    const std::size_t end = text.find(',');
    if (!read_piece(text.substr(piece.size(), end - piece.size()), algorithm.piece)) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
  return text.starts_with(blocks) && read_blocks(text.substr(blocks.size()), algorithm.blocks);
}

}  // namespace

std::string text(const ProgramAlgorithm& algorithm) {
  std::string text(kind_names[static_cast<std::size_t>(algorithm.kind)]);
  if (algorithm.piece != 0) text += "(piece=" + format_bytes(algorithm.piece);
  if (algorithm.blocks != 0)
    text += (algorithm.piece == 0 ? "(blocks=" : ",blocks=") + std::to_string(algorithm.blocks);
  return algorithm.piece == 0 && algorithm.blocks == 0 ? text : text + ")";
}

std::optional<ProgramAlgorithm> parse_program_algorithm(std::string_view text) {
  const std::size_t open = text.find('(');
  const auto found = std::ranges::find(kind_names, text.substr(0, open));
  if (found == std::end(kind_names)) return {};
  ProgramAlgorithm algorithm{static_cast<Kind>(found - std::begin(kind_names))};
  if (open == std::string_view::npos) return algorithm;
  text.remove_prefix(open + 1);
  if (!text.ends_with(')')) return {};
  text.remove_suffix(1);
  return read_parameters(text, algorithm) ? std::optional(algorithm) : std::nullopt;
}

ProgramAlgorithm default_program_algorithm(Bytes bytes, bool ll128) {
  if (ll128 && bytes > defaults::program_ll_beside_ll128 && bytes <= defaults::program_ll128) return {Kind::ll128};
  return {bytes <= defaults::program_ll ? Kind::ll : Kind::direct};
}

ProgramAlgorithms::ProgramAlgorithms(const Chooser* chooser) {
  if (chooser == nullptr) return;
  for (const CollectiveRow& row : chooser->plan().collectives)
    if (row.operation == operation && row.memory == "gpu")
      if (const auto algorithm = parse_program_algorithm(row.way))
        rows_.push_back({row.from_bytes, row.to_bytes, *algorithm});
}

ProgramAlgorithms ProgramAlgorithms::with_few_slots() const {
  ProgramAlgorithms same = *this;
  same.few_slots_ = true;
  return same;
}

ProgramAlgorithm ProgramAlgorithms::of(Bytes bytes) const {
  if (few_slots_ && bytes > defaults::program_ll) return {Kind::direct};
  const bool ll128 = why_no_ll128_.empty();
  ProgramAlgorithm algorithm = default_program_algorithm(bytes, ll128);
  const auto row = std::ranges::find_if(rows_, [&](const Row& each) {
    return bytes >= each.from && bytes <= each.to && (ll128 || each.algorithm.kind != Kind::ll128);
  });
  if (row != rows_.end()) algorithm = row->algorithm;
  if (only_) algorithm = *only_;
  if (algorithm.kind == Kind::ll128 && !ll128)
    throw Error(ErrorKind::unavailable, "a message of a schedule by " + text(algorithm) + ": " + why_no_ll128_);
  if (algorithm.blocks > program::most_blocks)
    throw Error(ErrorKind::invalid_input, "a message of a schedule by " + text(algorithm) + ": it has " +
                                              std::to_string(program::most_blocks) + " blocks at most");
  return algorithm;
}

}  // namespace waywiser
