#pragma once

// NVSHMEM's names over heaps, for CUDA sources and, without those of kernels, for C++: docs/nvshmem.md.
#include "waywiser/heap/nvshmem/atomics.cuh"
#include "waywiser/heap/nvshmem/collectives.cuh"
#include "waywiser/heap/nvshmem/refused.cuh"
#include "waywiser/heap/nvshmem/setup.cuh"
#include "waywiser/heap/nvshmem/transfers.cuh"
#include "waywiser/heap/nvshmem/waits.cuh"
