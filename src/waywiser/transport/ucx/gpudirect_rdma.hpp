#pragma once

#include <optional>
#include <string>

#include "waywiser/topology/system_files.hpp"

namespace waywiser {

// Empty: a network card can access the memory of this machine's GPUs, by a peer-memory client of the RDMA stack or as a
// dma-buf. Otherwise what is missing, for people.
std::optional<std::string> why_no_gpudirect_rdma(const SystemFiles& files);

}  // namespace waywiser
