#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "waywiser/halo/boundary.hpp"
#include "waywiser/halo/tuning.hpp"
#include "waywiser/policy/plan.hpp"

namespace waywiser {

class Group;

// An answer of tune() as a plan keeps it, without intervals and rounds, and back. The time of a variant is that of the
// chosen one by its ratio; a mix is "mixed(other=packed,KIND=direct)". Throws invalid_input; `what` names the row.
PlanRow halo_row(PlanKey key, Bytes bytes, const HaloTuning& tuning);
HaloTuning halo_tuning(const PlanRow& row, const std::string& what);

// What of a rank's part decides the times: the sizes and the way each part lies, and where the fields are. Of a mesh
// the lengths of the lists count, not the cells in them.
std::uint64_t shape_of(const HaloBoundary& boundary, const std::string& place, const std::string& machine);
// The shape that a row has: that of all ranks, in their order.
std::string shape_of_all(std::span<const std::uint64_t> ranks);

// The rows of halo exchanges in a plan, as all ranks of a group see them: each has its own path, which may be a folder
// of results, and then its plan.json is meant. Every call is collective and throws at all ranks if the file of one
// cannot be read or written.
class KeptHaloAnswers {
 public:
  // `boundary` and `place` ("host", "cuda gpu0") are this rank's; `memory` of all ranks: "gpu" if one has its fields
  // there.
  KeptHaloAnswers(Group& group, const std::filesystem::path& file, const HaloBoundary& boundary,
                  const std::string& place, std::string memory);

  // The answer for this shape, if the files of all ranks have the same one.
  std::optional<HaloTuning> known();
  // Adds it to the file of each rank, in place of the one that there was; ranks of one machine write the same.
  void keep(const HaloTuning& tuning);

 private:
  void read();

  Group& group_;
  std::filesystem::path file_;
  PlanKey key_;
  Bytes bytes_ = 0;
  Plan plan_;
};

}  // namespace waywiser
