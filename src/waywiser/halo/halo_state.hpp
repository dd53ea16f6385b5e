#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/group/group.hpp"
#include "waywiser/halo/halo_exchange.hpp"
#include "waywiser/halo/halo_run.hpp"
#include "waywiser/halo/tuning.hpp"

namespace waywiser {

// The parts of an exchange.
struct [[gnu::visibility("hidden")]] HaloExchange::State {
  State(Group& of, HaloPartition made) : group(of), partition(std::move(made)) {}

  // Collective.
  void set_fields(std::span<const HaloArray> wanted);
  // Collective. Throws unavailable at all ranks.
  std::unique_ptr<HaloRun> prepared(HaloVariant variant);
  void adopt(HaloVariant variant, std::unique_ptr<HaloRun> made);
  void use_default();
  void start(Stream* stream);
  void finish();
  void check_is_over(const char* what) const;

  Group& group;
  const HaloPartition partition;
  HaloBoundary boundary;
  std::vector<Elements> arrays;                         // as bytes
  bool on_gpu = false;                                  // this rank's
  bool any_on_gpu = false, any_on_virtual_gpu = false;  // those of all ranks
  HaloVariant variant = HaloVariant::packed;
  std::string reason;  // for the variant
  std::unique_ptr<HaloRun> run;
  bool under_way = false;
  std::array<HaloCounts, std::size(halo_variants)> counts{};  // of runs that are gone
  std::optional<HaloTuning> tuning;
  std::shared_ptr<void> owner;
};

}  // namespace waywiser
