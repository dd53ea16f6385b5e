#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waywiser/base/units.hpp"

namespace waywiser {

class Chooser;

// How a message of a schedule on GPUs travels, as plans and measurements name it: "LL"; "bulk", through a receive
// buffer; "direct", straight into the receiver's array. Or with the bytes of a piece and the kernel's blocks, or one of
// both: "direct(piece=64K,blocks=16)".
struct ProgramAlgorithm {
  enum class Kind : std::uint8_t { ll, bulk, direct };

  Kind kind = Kind::ll;
  Bytes piece = 0;      // 0: the default
  unsigned blocks = 0;  // 0: the default

  bool operator==(const ProgramAlgorithm&) const = default;
};

std::string text(const ProgramAlgorithm& algorithm);
// Empty if the text names none.
std::optional<ProgramAlgorithm> parse_program_algorithm(std::string_view text);
// The choice without a measurement.
ProgramAlgorithm default_program_algorithm(Bytes bytes);

// The plan's algorithms for messages of schedules on GPUs, read once. All ranks follow one plan, so both ends make the
// same choice; LandingPlan compares what is set for measuring.
class ProgramAlgorithms {
 public:
  // The plan's rows of this operation, by the bytes of a message.
  static constexpr std::string_view operation = "prepared_exchange";
  explicit ProgramAlgorithms(const Chooser* chooser);  // nullptr: no plan

  // For measuring, at all ranks: the only algorithm until another one is set; empty: the choice.
  void set(std::optional<ProgramAlgorithm> only) { only_ = only; }
  // Throws invalid_input for more blocks than a schedule has.
  ProgramAlgorithm of(Bytes bytes) const;

 private:
  struct Row {
    Bytes from, to;
    ProgramAlgorithm algorithm;
  };
  std::vector<Row> rows_;
  std::optional<ProgramAlgorithm> only_;
};

}  // namespace waywiser
