#include "apps/wilson_dslash/wilson_dslash.cpp"  // NOLINT(bugprone-suspicious-include): its loops as kernels
