#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/group/group.hpp"
#include "waywiser/group/inside.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/halo_run.hpp"
#include "waywiser/halo/tuning.hpp"

namespace waywiser {

// What an exchange uses.
struct HaloChoice {
  HaloVariant variant = HaloVariant::packed;  // mixed: that of each side differs
  HaloMix mix;
  bool hosts = false, kernels = false;  // mixed: whether they move sides of any rank
};

// The parts of an exchange.
struct [[gnu::visibility("hidden")]] HaloExchange::State {
  class Tuner;

  State(Group& of, HaloPartition made) : group(of), partition(std::move(made)) {}

  // Around each call: keeps other threads out of it.
  GroupHold alone() const { return GroupHold(group); }
  // Collective.
  void set_fields(std::span<const HaloArray> wanted);
  HaloChoice all_by(HaloVariant variant) const;
  // Collective: throws invalid_input at all ranks unless all of them use this variant, or all a list (none).
  void require_same_use(std::optional<HaloVariant> variant);
  // Collective: what all ranks use if each gives its sides by these variants. Throws invalid_input at all ranks.
  HaloChoice agreed(std::vector<HaloVariant> gives);
  // Collective. Throws unavailable at all ranks.
  std::unique_ptr<HaloRun> prepared(const HaloChoice& wanted);
  void adopt(HaloChoice taken, std::unique_ptr<HaloRun> made);
  void use(const HaloChoice& wanted);
  // The variant of each of this rank's sides, with its runner-up: a line for each.
  std::string words_of_sides() const;
  void use_default();
  // Collective, and the answer is used from then on. `file`: empty for none.
  void tune(Seconds seconds, const std::filesystem::path& file);
  // Collective: whether what a file has is available today; then it is used.
  bool adopt_known(const HaloTuning& known);
  // Collective: finds the kind of each side. Returns the distinct ones of all ranks, those of larger sides first.
  std::vector<std::uint64_t> kinds_of_all();
  // Collective: the choice by the variants that an answer has for each kind.
  HaloChoice by_kinds(const HaloTuning& answer);
  void start(Stream* stream);
  void finish();
  void check_is_over(const char* what) const;

  Group& group;
  const HaloPartition partition;
  HaloBoundary boundary;
  std::vector<Elements> arrays;                         // as bytes
  bool on_gpu = false;                                  // this rank's
  bool share_gpu = false;                               // two ranks have their fields on one GPU
  bool any_on_gpu = false, any_on_virtual_gpu = false;  // those of all ranks
  int host_rank = -1;                                   // the first one with fields in host memory; -1: none
  HaloChoice choice;
  std::string reason;  // for the choice
  std::string place;   // of this rank's fields, for kept answers: "host", "cuda gpu0", "cuda gpu0, ranks share GPUs"
  std::unique_ptr<HaloRun> run;
  bool under_way = false;
  HaloTimes times;
  Seconds first_start = 0, started = 0;                                               // by now_seconds()
  std::array<HaloCounts, static_cast<std::size_t>(HaloVariant::mixed) + 1> counts{};  // of runs that are gone
  std::optional<HaloTuning> tuning;
  Seconds tuned_for = 0;  // 0: tune() has not chosen the variant
  std::filesystem::path tuned_file;
  std::vector<std::uint64_t> kinds;  // of the sides that this rank gives, as kinds_of_all() found them
  std::shared_ptr<void> owner;
};

}  // namespace waywiser
