#include "apps/conjugate_gradient/conjugate_gradient.cpp"  // NOLINT(bugprone-suspicious-include): its loops as kernels
