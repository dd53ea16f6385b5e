#pragma once

// NVSHMEM's names over heaps, for CUDA sources and, without those of kernels, for C++: docs/nvshmem.md. Programs find
// assert() here, as in NVSHMEM's own header.
#include <cassert>

#include "waywiser/heap/nvshmem/atomics.cuh"
#include "waywiser/heap/nvshmem/collectives.cuh"
#include "waywiser/heap/nvshmem/refused.cuh"
#include "waywiser/heap/nvshmem/setup.cuh"
#include "waywiser/heap/nvshmem/transfers.cuh"
#include "waywiser/heap/nvshmem/waits.cuh"
