#pragma once

#include <optional>

#include "waywiser/base/error.hpp"

// A failure of one rank becomes an error of all, so that none waits for it.
namespace waywiser {

class Group;
class GroupCore;

// Throws what every rank finds in what all have told each other. None throws before all have it: its program may end by
// it, and a rank that still waited would hear of that instead. The second form: within a call of the group.
[[noreturn]] void throw_known_to_all(Group& group, const Error& error);
[[noreturn]] void throw_known_to_all(GroupCore& core, const Error& error);

// Collective: throws what any rank has failed with, if one has: "rank 3: ...".
void throw_at_all(Group& group, const std::optional<Error>& failed);

// What `function` throws.
template <typename Function>
std::optional<Error> failure_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  return {};
}

}  // namespace waywiser
