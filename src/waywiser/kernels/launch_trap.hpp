#pragma once

#include "waywiser/device/stream.hpp"

namespace waywiser {

// Ends all work on the stream's GPU for good, also what is under way on other streams: what is enqueued behind it never
// runs, and every later call of this process on that GPU fails. GPU streams only.
void launch_trap(Stream& stream);

}  // namespace waywiser
