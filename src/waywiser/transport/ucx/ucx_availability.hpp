#pragma once

#include <optional>
#include <string>

#include "waywiser/transport/transport.hpp"

namespace waywiser {

// Why UCX cannot serve a path here, for people; empty: it can.
std::optional<std::string> why_no_ucx(const Path& path, const TransportContext& context);

}  // namespace waywiser
