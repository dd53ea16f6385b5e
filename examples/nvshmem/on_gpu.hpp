#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

// For the programs of this folder, which use NVSHMEM's names alone.

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// The GPU of this PE is the present device from now on. False: there is none.
inline bool use_gpu(int pe_of_node) {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) return false;
  check(cudaSetDevice(pe_of_node % gpus), "cudaSetDevice");
  return true;
}
