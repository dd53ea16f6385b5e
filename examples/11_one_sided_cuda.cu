// The same program for GPUs.
#include "11_one_sided.cpp"
