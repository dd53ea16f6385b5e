#pragma once

#include <functional>
#include <span>
#include <vector>

#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {

// Collective, while a group forms and nothing else uses its connections: something of each rank to all, by rank. Throws
// io, timeout or interrupted, and what another rank has said by tell_refusal().
std::vector<std::vector<std::byte>> share_with_all(Muster& muster, int rank, std::span<const std::byte> mine,
                                                   Deadline deadline, const std::function<bool()>& interrupted = {});

// This rank cannot be part of the group: the others hear why, in place of what it would share.
void tell_refusal(Muster& muster, const std::string& why) noexcept;

}  // namespace waywiser
