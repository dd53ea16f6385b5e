#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "waywiser/comm/bootstrap/meeting.hpp"

namespace waywiser {

// Collects the texts of all ranks at rank 0, in rank order; other ranks get nothing and return when rank 0 has all
// texts. It needs sockets but no UCX, so a machine on which nothing else works can still report. Throws invalid_input
// for a text over 1 MiB, and the errors of meet().
std::vector<std::string> gather_texts(const Launch& launch, std::string_view mine, Deadline deadline);

}  // namespace waywiser
