#pragma once

#include <string>
#include <string_view>

namespace waywiser {

// The present name of an algorithm in an old profile or plan: "LL" for "packets", "two_shot_LL128(...)" for
// "two_shot_lines(...)". Other names stay unchanged.
std::string algorithm_of_today(std::string_view name);

}  // namespace waywiser
