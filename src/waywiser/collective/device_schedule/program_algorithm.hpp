#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "waywiser/policy/planned_ways.hpp"

namespace waywiser {

// How a message of a schedule on GPUs travels, as plans and measurements name it: "LL"; "LL128"; "bulk", through a
// receive buffer; "direct", straight into the receiver's array. Or with the bytes of a piece and the kernel's blocks,
// or one of both: "direct(blocks=16,piece=64K)".
struct ProgramAlgorithm {
  enum class Kind : std::uint8_t { ll, ll128, bulk, direct };

  Kind kind = Kind::ll;
  Bytes piece = 0;      // 0: the default
  unsigned blocks = 0;  // 0: the default

  bool operator==(const ProgramAlgorithm&) const = default;
};

// Whether the data carry their own flags. What is put does not go by such a kind.
constexpr bool is_flagged(ProgramAlgorithm::Kind kind) {
  return kind == ProgramAlgorithm::Kind::ll || kind == ProgramAlgorithm::Kind::ll128;
}
std::string text(const ProgramAlgorithm& algorithm);
// Empty if it is another way.
std::optional<ProgramAlgorithm> program_algorithm(const Way& way);
// The choice without a measurement. `ll128`: all GPUs are joined by links that keep lines whole.
ProgramAlgorithm default_program_algorithm(Bytes bytes, bool ll128);

// The plan's algorithms for messages of schedules on GPUs, read once. All ranks follow one plan, so both ends make the
// same choice; LandingPlan compares what is set for measuring.
class ProgramAlgorithms {
 public:
  // The plan's rows of this operation, by the bytes of a message.
  static constexpr std::string_view operation = "prepared_exchange";
  explicit ProgramAlgorithms(const Chooser* chooser);  // nullptr: no plan

  // For measuring, at all ranks: the only algorithm until another one is set; empty: the choice.
  void set(std::optional<ProgramAlgorithm> only) { only_ = only; }
  // Why no message goes by LL128; empty: some may. The same at all ranks.
  void set_why_no_ll128(std::string why) { why_no_ll128_ = std::move(why); }
  // The same for little memory: messages that LL need not carry go direct, unless there is an only algorithm.
  ProgramAlgorithms with_few_slots() const;
  bool may_have_fewer_slots() const { return !only_ && !few_slots_; }
  // Throws invalid_input for more blocks than a schedule has; unavailable if the only one is LL128 and it cannot be.
  ProgramAlgorithm of(Bytes bytes) const;

 private:
  PlannedWays<ProgramAlgorithm> planned_;
  std::optional<ProgramAlgorithm> only_;
  std::string why_no_ll128_;
  bool few_slots_ = false;
};

}  // namespace waywiser
