#pragma once

#include <vector>

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Several mechanisms at once, each with a part of the bytes. Parameters: ways=copy_engine+relay, share=75+25 (percent,
// in the order of the ways), and those of way N as "N.name": "2.via=gpu2". A handle is for all ways.
Mechanism split_mechanism();

// The ways as paths of their own. Throws invalid_input.
std::vector<Path> split_ways(const Path& path);

// Parameter 'share' as percentages, one for each of `ways`. Throws invalid_input.
std::vector<int> split_percents(const Path& path, std::size_t ways);

// How many bytes each way gets: whole multiples of 4 KiB but for the rest, which the first way takes.
std::vector<Bytes> split_bytes(const std::vector<int>& percents, Bytes bytes);

}  // namespace waywiser
