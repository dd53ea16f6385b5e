#pragma once

#include <string>
#include <string_view>

namespace waywiser {

// What a collective's algorithm in a profile or plan is called today: "LL" for "packets", "two_shot_LL128(...)" for
// "two_shot_lines(...)". Other names are what they were.
std::string algorithm_of_today(std::string_view name);

}  // namespace waywiser
