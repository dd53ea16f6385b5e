#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string_view>

#include "bindings/cuda_array_interface.hpp"

namespace waywiser {

// Of "torch.float32"; bools are sent as bytes.
std::optional<DataType> torch_type(std::string_view name);

// Reads a tensor of PyTorch in a tenth of the time that DLPack takes. Returns nothing for other objects, for derived
// types, and for tensors that are more than plain memory: DLPack handles these.
std::optional<ArrayFacts> read_torch_tensor(nanobind::handle object);

}  // namespace waywiser
