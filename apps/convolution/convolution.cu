#include "apps/convolution/convolution.cpp"  // NOLINT(bugprone-suspicious-include): its loops as kernels
