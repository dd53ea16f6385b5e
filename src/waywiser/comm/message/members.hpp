#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waywiser/comm/message/tag.hpp"

namespace waywiser {

// The ranks of one group, as ranks of the whole session.
struct Members {
  std::uint32_t group = 0;  // the group's number in tags
  int rank = 0;             // this rank's number in the group
  std::vector<int> world;
  std::uint32_t generation = 0;                   // generation of the number
  std::shared_ptr<const void> number_taken = {};  // until the last copy is destroyed

  int size() const noexcept { return static_cast<int>(world.size()); }
  std::uint32_t peer(int other) const { return static_cast<std::uint32_t>(world[static_cast<std::size_t>(other)]); }
  // "rank 1", in a part "rank 1 (rank 2 of the job)".
  std::string text_of(int other) const {
    const std::string text = "rank " + std::to_string(other), in_job = std::to_string(peer(other));
    return in_job == std::to_string(other) ? text : text + " (rank " + in_job + " of the job)";
  }
  // Groups made by one split share their number, but no member.
  std::uint32_t key() const { return group << 16 | static_cast<std::uint32_t>(world.front()); }
  Tag tag(int source, std::uint64_t label, const Call& call) const {
    return make_tag(group, is_collective(call.kind), source, label, call, generation);
  }
};

}  // namespace waywiser
