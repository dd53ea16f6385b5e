#pragma once

// Marks code that runs in CUDA kernels as well as on host threads.
#if defined(__CUDACC__)
#define WAYWISER_DEVICE __host__ __device__
#else
#define WAYWISER_DEVICE
#endif

// Unrolls loops, so that small arrays stay in registers; and the opposite, for rarely run code.
#if defined(__CUDA_ARCH__)
#define WAYWISER_UNROLL _Pragma("unroll")
#define WAYWISER_ROLLED _Pragma("unroll 1")
#else
#define WAYWISER_UNROLL
#define WAYWISER_ROLLED
#endif

// Keeps rarely used code out of frequently used code.
#if defined(__CUDACC__)
#define WAYWISER_APART __noinline__
#else
#define WAYWISER_APART
#endif
