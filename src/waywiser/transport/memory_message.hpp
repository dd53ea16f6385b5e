#pragma once

#include <vector>

#include "waywiser/device/memory.hpp"
#include "waywiser/transport/peer_channel.hpp"

namespace waywiser {

// A MemoryHandle in the form for a PeerChannel: as JSON, its descriptor beside it.
Json to_json(const MemoryHandle& handle);
// Throws invalid_input for a message that is not a handle or lacks its descriptor, which is taken from `descriptors`.
MemoryHandle memory_handle_from_json(const Json& value, std::vector<Descriptor>& descriptors);

}  // namespace waywiser
