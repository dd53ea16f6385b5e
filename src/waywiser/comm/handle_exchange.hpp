#pragma once

#include <vector>

#include "waywiser/comm/group.hpp"
#include "waywiser/device/memory.hpp"

namespace waywiser {

// Every rank of `group` gets the handles of all ranks' memories; all must be on one machine, as handles travel with
// file descriptors over sockets in the runtime folder. Throws unavailable naming a rank that is elsewhere.
std::vector<MemoryHandle> exchange_handles(Group& group, Session& session, const Members& members, const Call& call,
                                           const MemoryHandle& mine);

}  // namespace waywiser
