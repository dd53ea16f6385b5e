#pragma once

#include <memory>

#include "waywiser/transport/courier/resident_kernel.hpp"
#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Small copies between host memory and one GPU by a resident kernel, without a driver call on the way. Works on a
// stream of the host, so a put is complete when it returns; its bytes are visible to later work on every stream.
Mechanism courier_mechanism();
std::unique_ptr<Transport> open_courier(const Path& path, const TransportContext& context,
                                        const CourierOptions& options = {});

}  // namespace waywiser
