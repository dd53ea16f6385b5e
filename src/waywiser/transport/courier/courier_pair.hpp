#pragma once

#include "waywiser/transport/courier/resident_kernel.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// The courier between two processes, one of which owns the GPU memory. Two-sided. Only the owner's kernel runs; the
// other process makes no call of the GPU's driver. Both open the same pair at the same time; the owner must be inside
// a call now and then (finish is one) for the messages to move.
std::unique_ptr<Transport> open_courier_pair(const Path& path, const TransportContext& context,
                                             const CourierOptions& options);

}  // namespace waywiser
