#pragma once

#include <optional>

#include "waywiser/base/error.hpp"

// A failure of one rank becomes an error of all, so that none waits for it.
namespace waywiser {

class Group;

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
