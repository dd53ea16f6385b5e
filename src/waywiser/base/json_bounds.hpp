#pragma once

#include <string_view>

namespace waywiser {

// Rejects input of parse_json before anything is allocated, so that time and memory are in proportion to the text: more
// than 256 MiB, 5 million values, nesting deeper than 64, objects with too many keys. Throws invalid_input.
void check_json_bounds(std::string_view text, std::string_view what);

}  // namespace waywiser
