#pragma once

#include <filesystem>

#include "apps/navier_stokes/cases/flow_case.hpp"

namespace flow {

// A case that `run.py` has prepared of a case file and a mesh: lines `name: value`, lines `array NAME TYPE COUNT` with
// the type f8 or i8, a line `data`, and the bytes of these arrays one after the other. SI units. Throws invalid_input
// if it is damaged, io if it cannot be read.
FlowCase prepared_case(const std::filesystem::path& file);

}  // namespace flow
