#pragma once

namespace waywiser {

// y += a * x, up to 64 numbers.
void launch_axpy(void* cuda_stream, float* y, const float* x, float a, int n);

}  // namespace waywiser
