#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waywiser/base/error.hpp"
#include "waywiser/comm/schedule.hpp"

namespace waywiser {

class Group;

// All are collective, and throw the same at all ranks.

// Throws what any rank has failed with, if one has: "rank 3: ...".
void throw_at_all(Group& group, const std::optional<Error>& failed);
// Throws invalid_input if a rank has another value than rank 0: "rank 3 has other WHAT than rank 0".
void require_equal(Group& group, std::uint64_t value, const std::string& what);
// Throws invalid_input if two ranks' schedules do not match.
void require_matching(Group& group, const Schedule& schedule);
// What each rank says.
std::vector<std::uint8_t> said_by_all(Group& group, std::uint8_t mine);

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
