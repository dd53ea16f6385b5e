#pragma once

#include "waywiser/transport/courier/resident_kernel.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The courier between two processes, one of which owns the GPU memory. Two-sided. Only the owner's kernel runs; the
// other process makes no GPU driver call. Both open the same pair at the same time; messages move only if the owner is
// inside a call now and then (for example finish).
std::unique_ptr<Transport> open_courier_pair(const Path& path, const TransportContext& context,
                                             const CourierOptions& options);

}  // namespace waywiser
