#include "apps/jacobi/jacobi.cpp"  // NOLINT(bugprone-suspicious-include): its loops as kernels
