#pragma once

#include <vector>

#include "waywiser/measure/campaign_options.hpp"

namespace waywiser {

// The powers of two to measure, the most telling first (every 256th, then every 16th, the largest, ...), so that a
// budget that ends early leaves a coarse grid and not half of a fine one. Quick: up to 64M.
std::vector<Bytes> grid_sizes(const CampaignOptions& options);
// The sizes at which parameters are searched, ascending.
std::vector<Bytes> probe_sizes(const CampaignOptions& options);
// Half way between two sizes on a logarithmic axis; equal to `left` when there is nothing between them.
Bytes middle_size(Bytes left, Bytes right);

}  // namespace waywiser
