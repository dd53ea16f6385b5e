#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waywiser/base/json.hpp"
#include "waywiser/halo/boundary.hpp"
#include "waywiser/halo/tuning.hpp"

namespace waywiser {

class Group;

// An answer of tune() as a file keeps it.
struct HaloAnswer {
  std::string shape;  // hash of what decides the times
  HaloTuning tuning;  // without intervals and rounds; of each kind of sides only the variant
};

// The file's form, and back. Throws invalid_input; `what` names the file.
Json halo_answers_json(const std::vector<HaloAnswer>& answers);
std::vector<HaloAnswer> halo_answers(const Json& value, const std::string& what);

// What of a rank's part decides the times: the sizes and the way each part lies, and where the fields are. Of a mesh
// the lengths of the lists count, not the cells in them.
std::uint64_t shape_of(const HaloBoundary& boundary, const std::string& place, const std::string& machine);

// The answers in one file, as all ranks of a group see it: each has its own path, which may be a folder of results, and
// then its halo.json is meant. Every call is collective and throws at all ranks if the file of one cannot be read or
// written.
class KeptHaloAnswers {
 public:
  // `shape`: of this rank.
  KeptHaloAnswers(Group& group, const std::filesystem::path& file, std::uint64_t shape);

  // The answer for this shape, if the files of all ranks have the same one.
  std::optional<HaloTuning> known();
  // Adds it to the file of each rank, in place of the one that there was; ranks of one machine write the same.
  void keep(const HaloTuning& tuning);

 private:
  Group& group_;
  std::filesystem::path file_;
  std::string shape_;
  std::vector<HaloAnswer> answers_;
};

}  // namespace waywiser
