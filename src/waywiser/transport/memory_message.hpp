#pragma once

#include <vector>

#include "waywiser/device/memory.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// A MemoryHandle as it travels over a PeerChannel: as JSON, its descriptor beside it.
Json to_json(const MemoryHandle& handle);
// Throws invalid_input for a message that is no handle or lacks its descriptor, which is taken from `descriptors`.
MemoryHandle memory_handle_from_json(const Json& value, std::vector<Descriptor>& descriptors);

}  // namespace waywiser
