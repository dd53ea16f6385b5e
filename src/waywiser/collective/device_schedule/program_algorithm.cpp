#include "waywiser/collective/device_schedule/program_algorithm.hpp"

#include <algorithm>

#include "waywiser/base/error.hpp"
#include "waywiser/collective/device_schedule/program.hpp"
#include "waywiser/policy/defaults.hpp"

namespace waywiser {
namespace {

using Kind = ProgramAlgorithm::Kind;

constexpr std::string_view kind_names[] = {"LL", "LL128", "bulk", "direct"};
constexpr Bytes least_piece = 256, most_piece = Bytes{1} << 30, piece_unit = 16;
constexpr unsigned most_blocks_in_text = 1024;

bool read_piece(const Way& way, Bytes& piece) {
  const auto found = way.parameters.find("piece");
  if (found == way.parameters.end()) return true;
  try {
    piece = parse_bytes(found->second);
  } catch (const Error&) {
    return false;
  }
  return piece >= least_piece && piece <= most_piece && piece % piece_unit == 0;
}

}  // namespace

std::string text(const ProgramAlgorithm& algorithm) {
  Way way{std::string(kind_names[static_cast<std::size_t>(algorithm.kind)])};
  if (algorithm.piece != 0) way.parameters["piece"] = format_bytes(algorithm.piece);
  if (algorithm.blocks != 0) way.parameters["blocks"] = std::to_string(algorithm.blocks);
  return text(way);
}

std::optional<ProgramAlgorithm> program_algorithm(const Way& way) {
  const auto found = std::ranges::find(kind_names, way.name);
  if (found == std::end(kind_names)) return {};
  ProgramAlgorithm algorithm{static_cast<Kind>(found - std::begin(kind_names))};
  const bool is_read = way.has_only({"blocks", "piece"}) && read_piece(way, algorithm.piece) &&
                       way.read("blocks", most_blocks_in_text, algorithm.blocks);
  return is_read ? std::optional(algorithm) : std::nullopt;
}

ProgramAlgorithm default_program_algorithm(Bytes bytes, bool ll128) {
  if (ll128 && bytes > defaults::program_ll_beside_ll128 && bytes <= defaults::program_ll128) return {Kind::ll128};
  return {bytes <= defaults::program_ll ? Kind::ll : Kind::direct};
}

ProgramAlgorithms::ProgramAlgorithms(const Chooser* chooser)
    : planned_(chooser, {operation, "gpu"}, program_algorithm) {}

ProgramAlgorithms ProgramAlgorithms::with_few_slots() const {
  ProgramAlgorithms same = *this;
  same.few_slots_ = true;
  return same;
}

ProgramAlgorithm ProgramAlgorithms::of(Bytes bytes) const {
  if (few_slots_ && bytes > defaults::program_ll) return {Kind::direct};
  const bool ll128 = why_no_ll128_.empty();
  ProgramAlgorithm algorithm = default_program_algorithm(bytes, ll128);
  const auto may = [&](const ProgramAlgorithm& each) { return ll128 || each.kind != Kind::ll128; };
  const auto why_not = [&](const ProgramAlgorithm&) { return why_no_ll128_; };
  if (const ProgramAlgorithm* planned = planned_.find(bytes, may, why_not)) algorithm = *planned;
  if (only_) algorithm = *only_;
  if (algorithm.kind == Kind::ll128 && !ll128)
    throw Error(ErrorKind::unavailable, "a message of a schedule by " + text(algorithm) + ": " + why_no_ll128_);
  if (algorithm.blocks > program::most_blocks)
    throw Error(ErrorKind::invalid_input, "a message of a schedule by " + text(algorithm) + ": it has " +
                                              std::to_string(program::most_blocks) + " blocks at most");
  return algorithm;
}

}  // namespace waywiser
