#pragma once

#include <string_view>

#include "waywiser/heap/device/terms.hpp"

namespace waywiser {

class Chooser;

// The protocols of a heap by what `tune` has measured, the plan's rows of the operation "put_message" with the ways LL,
// LL128, stores, and bulk (these by bulk asynchronous copies); else by defaults. `has_lines`: stores reach all ranks,
// and become visible as whole lines of 128 bytes. nullptr: no plan.
one_sided::Protocols message_protocols(const Chooser* chooser, bool has_lines);

// All messages and puts by one way, for LL and LL128 up to the longest that flags carry. Throws invalid_input for
// another name.
one_sided::Protocols only_protocol(std::string_view way);

}  // namespace waywiser
