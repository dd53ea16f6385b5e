#pragma once

#include <vector>

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Several mechanisms at once, each with a share of the bytes. Parameters: ways=copy_engine+relay, share=75+25 (percent,
// in the order of the ways); parameters of way N are "N.name": "2.via=gpu2". A handle applies to all ways.
Mechanism split_mechanism();

// The ways as separate paths. Throws invalid_input.
std::vector<Path> split_ways(const Path& path);

// Parameter 'share' as percentages, one for each of `ways`. Throws invalid_input.
std::vector<int> split_percents(const Path& path, std::size_t ways);

// The bytes of each way: multiples of 4 KiB, except that the first way takes the rest.
std::vector<Bytes> split_bytes(const std::vector<int>& percents, Bytes bytes);

}  // namespace waywiser
