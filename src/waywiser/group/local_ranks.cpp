#include "waywiser/group/local_ranks.hpp"

#include "waywiser/group/inside.hpp"

namespace waywiser {
namespace {

int local_ranks_below(const Group& group, int end) {
  int count = 0;
  for (int rank = 0; rank < end; ++rank) count += same_machine(group, rank) ? 1 : 0;
  return count;
}

}  // namespace

int local_rank(const Group& group) { return local_ranks_below(group, group.rank()); }
int local_size(const Group& group) { return local_ranks_below(group, group.size()); }

Group split_by_machine(Group& group, int key) {
  int first = 0;
  while (!same_machine(group, first)) ++first;
  return *group.split(first, key);
}

}  // namespace waywiser
