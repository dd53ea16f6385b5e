#pragma once

#include <optional>

#include "waywiser/group/group.hpp"

namespace waywiser {

// As Group::split, but each part is a job of its own, joined with the options of the group: a failure ends one of the
// parts, or the group, and not the others, and errors number a part's ranks from 0. Each part closes by itself, and is
// for a thread as one that has joined. Throws as split and join.
[[gnu::visibility("default")]] std::optional<Group> split_apart(Group& group, int color, int key = 0);

}  // namespace waywiser
