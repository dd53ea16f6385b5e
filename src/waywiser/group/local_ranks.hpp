#pragma once

#include "waywiser/group/group.hpp"

// The ranks of a group on this rank's machine: those whose memory it reaches, or those of its container.
namespace waywiser {

// This rank's number among them, in the order of the group; and how many there are.
[[gnu::visibility("default")]] int local_rank(const Group& group);
[[gnu::visibility("default")]] int local_size(const Group& group);
// Collective: their group, ordered by key, then rank. Throws as Group::split.
[[gnu::visibility("default")]] Group split_by_machine(Group& group, int key = 0);

}  // namespace waywiser
