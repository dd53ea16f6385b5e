#pragma once

#include <string>
#include <vector>

#include "waywiser/comm/bootstrap/tcp.hpp"

namespace waywiser {

// A rank that cannot be part of a group says why on all its lines before it closes any, and a rank whose line ends
// looks for such words first: all hear the reason, and nobody the end of a neighbour that had heard it earlier.

// Nothing follows. Returns when the other sides have it; who has gone needs none.
void say_farewell(const std::vector<Connection*>& lines, const std::string& why) noexcept;
// The same on one line, on which this side goes on listening.
void say_why(Connection& line, const std::string& why) noexcept;
// Why the other side, which has ended or has been told why this one ends, cannot be part of the group; empty: it does
// not say so. Skips what it sent before, of which the number of ranks of the job is the limit.
std::string last_words(Connection& line, std::size_t ranks) noexcept;

}  // namespace waywiser
