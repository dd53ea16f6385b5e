#include <algorithm>
#include <numeric>

#include "waywiser/base/error.hpp"
#include "waywiser/heap/nvshmem/nvshmem_job.hpp"

namespace waywiser {

// Heap::split is a call of all ranks.
void NvshmemJob::check_parent(int parent) const {
  static_cast<void>(heap());
  if (size_of(parent) != size())
    throw Error(ErrorKind::invalid_input, "team " + std::to_string(parent) + " is split, and only teams of all " +
                                              std::to_string(size()) + " PEs can be");
}

int NvshmemJob::keep(std::optional<HeapTeam> team) {
  if (!team) return no_team;
  const auto place = std::find(teams_.begin(), teams_.end(), std::nullopt);
  const auto handle = place - teams_.begin();
  if (handle >= NvshmemTerms::most_teams)
    throw Error(ErrorKind::unavailable,
                "there are " + std::to_string(NvshmemTerms::most_teams) + " teams, the most at a time: destroy some");
  if (place == teams_.end())
    teams_.push_back(std::move(team));
  else
    *place = std::move(team);
  return static_cast<int>(handle);
}

int NvshmemJob::split_strided(int parent, int start, int stride, int size) {
  check_parent(parent);
  return keep(heap_->split_strided(start, stride, size));
}

void NvshmemJob::split_2d(int parent, int columns, int& row, int& column) {
  check_parent(parent);
  auto [of_row, of_column] = heap_->split_2d(columns);
  row = keep(std::move(of_row));
  column = keep(std::move(of_column));
}

void NvshmemJob::destroy(int team) {
  static_cast<void>(this->team(team));
  if (team <= node) throw Error(ErrorKind::invalid_input, "team " + std::to_string(team) + " is predefined");
  teams_[static_cast<std::size_t>(team)].reset();
}

const HeapTeam& NvshmemJob::team(int handle) const {
  static_cast<void>(heap());
  if (handle < 0 || handle >= static_cast<int>(teams_.size()) || !teams_[static_cast<std::size_t>(handle)])
    throw Error(ErrorKind::invalid_input, "there is no team " + std::to_string(handle));
  return *teams_[static_cast<std::size_t>(handle)];
}

// Ranks of all PEs, in the order of the team; empty: there is no such team.
std::vector<int> NvshmemJob::members(int team) const {
  if (team == world) {
    std::vector<int> all(static_cast<std::size_t>(size()));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (team == shared || team == node) return ranks_of_machine_;
  if (team < 0 || team >= static_cast<int>(teams_.size()) || !teams_[static_cast<std::size_t>(team)]) return {};
  const one_sided::TeamTerms& terms = teams_[static_cast<std::size_t>(team)]->terms();
  return {terms.members, terms.members + terms.size};
}

int NvshmemJob::size_of(int team) const {
  const auto count = static_cast<int>(members(team).size());
  return count == 0 ? no_team : count;
}

int NvshmemJob::rank_in(int team) const { return translate(world, rank(), team); }

int NvshmemJob::translate(int from_team, int rank, int to_team) const {
  const std::vector<int> from = members(from_team), to = members(to_team);
  if (rank < 0 || rank >= static_cast<int>(from.size())) return no_team;
  const auto found = std::find(to.begin(), to.end(), from[static_cast<std::size_t>(rank)]);
  return found == to.end() ? no_team : static_cast<int>(found - to.begin());
}

}  // namespace waywiser
