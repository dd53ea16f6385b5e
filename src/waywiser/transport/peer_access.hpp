#pragma once

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Why the device `worker` (a GPU) cannot read or write the memory of `other`; empty: it can. Host memory can always be
// reached.
std::optional<std::string> why_no_access(const TransportContext& context, Place worker, Place other);
// Switches the access on, once; throws unavailable.
void switch_on_access(const TransportContext& context, Place worker, Place other);

// Between two processes: empty if the other process can open the destination's memory in the way that parameter
// "handle" says (default cuda_ipc).
std::optional<std::string> why_not_shareable(const Path& path, const TransportContext& context);

}  // namespace waywiser
