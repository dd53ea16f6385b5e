#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {

// The texts of all ranks, at rank 0 by rank; nothing at the others, which return when rank 0 has all. It needs sockets
// and no UCX: a machine on which nothing else works can still tell of it. Throws invalid_input for a text over 1 MiB,
// and what meet() throws.
std::vector<std::string> gather_texts(const Launch& launch, std::string_view mine, Deadline deadline);

}  // namespace waywiser
