#include "apps/moe_dispatch/moe_dispatch.cpp"  // NOLINT(bugprone-suspicious-include): its loops as kernels
