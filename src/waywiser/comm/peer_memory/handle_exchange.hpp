#pragma once

#include <vector>

#include "waywiser/comm/session/members.hpp"
#include "waywiser/comm/session/rank_exchange.hpp"
#include "waywiser/comm/session/session.hpp"
#include "waywiser/device/memory.hpp"

namespace waywiser {

// Every rank of a group gets the handles of all ranks' memories. All ranks must be on one machine, since handles travel
// with file descriptors over sockets in the runtime folder. Throws unavailable, naming a rank that is elsewhere.
std::vector<MemoryHandle> exchange_handles(RankExchange& exchange, Session& session, const Members& members,
                                           const Call& call, const MemoryHandle& mine);

}  // namespace waywiser
