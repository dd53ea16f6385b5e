#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// What the mechanisms ask before the device `worker` (a GPU) reads or writes the memory of `other`.
// Nothing: it can. Host memory can always be reached.
std::optional<std::string> why_no_access(const TransportContext& context, Place worker, Place other);
// Switches the access on, once; throws unavailable.
void switch_on_access(const TransportContext& context, Place worker, Place other);

// Between two processes: nothing when the destination's memory can be opened by the other process in the way that
// parameter "handle" says (cuda_ipc when there is none).
std::optional<std::string> why_not_shareable(const Path& path, const TransportContext& context);

}  // namespace waywiser
