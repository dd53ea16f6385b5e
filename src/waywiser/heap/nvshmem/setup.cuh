#pragma once

#include "waywiser/heap/nvshmem/here.cuh"

// Setup, memory, teams, and launches.

WAYWISER_NVSHMEM_HOST void nvshmem_init() { waywiser::nvshmem::init(); }
WAYWISER_NVSHMEM_HOST void nvshmem_finalize() {
  cudaDeviceSynchronize();
  waywiser::nvshmem::finalize();
}
[[noreturn]] WAYWISER_NVSHMEM_HOST void nvshmem_global_exit(int status) { waywiser::nvshmem::global_exit(status); }

WAYWISER_NVSHMEM_BOTH int nvshmem_my_pe() {
#if defined(__CUDA_ARCH__)
  return waywiser::nvshmem::terms_here.heap.rank;
#else
  return waywiser::nvshmem::rank();
#endif
}
WAYWISER_NVSHMEM_BOTH int nvshmem_n_pes() {
#if defined(__CUDA_ARCH__)
  return waywiser::nvshmem::terms_here.heap.size;
#else
  return waywiser::nvshmem::size();
#endif
}

WAYWISER_NVSHMEM_HOST void* nvshmem_malloc(std::size_t size) {
  return waywiser::nvshmem::allocate(waywiser::nvshmem::device_here(), size, 1, false);
}
WAYWISER_NVSHMEM_HOST void* nvshmem_calloc(std::size_t count, std::size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  return waywiser::nvshmem::allocate(waywiser::nvshmem::device_here(), count * size, 1, true);
}
WAYWISER_NVSHMEM_HOST void* nvshmem_align(std::size_t alignment, std::size_t size) {
  return waywiser::nvshmem::allocate(waywiser::nvshmem::device_here(), size, alignment, false);
}
WAYWISER_NVSHMEM_HOST void nvshmem_free(void* ptr) { waywiser::nvshmem::release(ptr); }

WAYWISER_NVSHMEM_BOTH void* nvshmem_ptr(const void* dest, int pe) {
#if defined(__CUDA_ARCH__)
  auto* address = static_cast<std::byte*>(const_cast<void*>(dest));
  return waywiser::nvshmem::with_ranks([&](const waywiser::nvshmem::NvshmemRanks& ranks) -> void* {
    if (address < ranks.at<std::byte>(0) || address >= ranks.at<std::byte>(ranks.terms().bytes)) return nullptr;
    return ranks.pointer(address, pe);
  });
#else
  return waywiser::nvshmem::pointer(dest, pe);
#endif
}

WAYWISER_NVSHMEM_BOTH int nvshmem_team_my_pe(nvshmem_team_t team) {
#if defined(__CUDA_ARCH__)
  int rank = -1;
  waywiser::nvshmem::with_team<waywiser::nvshmem::Scope::thread>(team, [&](const auto& of) { rank = of.rank(); });
  return rank;
#else
  return waywiser::nvshmem::rank_in(team);
#endif
}
WAYWISER_NVSHMEM_BOTH int nvshmem_team_n_pes(nvshmem_team_t team) {
#if defined(__CUDA_ARCH__)
  int size = -1;
  waywiser::nvshmem::with_team<waywiser::nvshmem::Scope::thread>(team, [&](const auto& of) { size = of.size(); });
  return size;
#else
  return waywiser::nvshmem::size_of(team);
#endif
}
WAYWISER_NVSHMEM_BOTH int nvshmem_team_translate_pe(nvshmem_team_t src_team, int src_pe, nvshmem_team_t dest_team) {
#if defined(__CUDA_ARCH__)
  using namespace waywiser::nvshmem;
  int found = -1;
  with_team<Scope::thread>(src_team, [&](const auto& from) {
    if (src_pe < 0 || src_pe >= from.size()) return;
    with_team<Scope::thread>(dest_team, [&](const auto& to) {
      for (int pe = 0; pe < to.size(); ++pe)
        if (to.member(pe) == from.member(src_pe)) found = pe;
    });
  });
  return found;
#else
  return waywiser::nvshmem::translate(src_team, src_pe, dest_team);
#endif
}
// All PEs call these, of a team of all PEs; 0: the PE is a member.
WAYWISER_NVSHMEM_HOST int nvshmem_team_split_strided(nvshmem_team_t parent_team, int start, int stride, int size,
                                                     const nvshmem_team_config_t* /*config*/, long /*config_mask*/,
                                                     nvshmem_team_t* new_team) {
  *new_team = waywiser::nvshmem::split_strided(waywiser::nvshmem::device_here(), parent_team, start, stride, size);
  return *new_team == NVSHMEM_TEAM_INVALID ? 1 : 0;
}
WAYWISER_NVSHMEM_HOST int nvshmem_team_split_2d(nvshmem_team_t parent_team, int xrange,
                                                const nvshmem_team_config_t* /*xaxis_config*/, long /*xaxis_mask*/,
                                                nvshmem_team_t* xaxis_team,
                                                const nvshmem_team_config_t* /*yaxis_config*/, long /*yaxis_mask*/,
                                                nvshmem_team_t* yaxis_team) {
  waywiser::nvshmem::split_2d(waywiser::nvshmem::device_here(), parent_team, xrange, *xaxis_team, *yaxis_team);
  return 0;
}
WAYWISER_NVSHMEM_HOST void nvshmem_team_destroy(nvshmem_team_t team) {
  if (team != NVSHMEM_TEAM_INVALID) waywiser::nvshmem::destroy(team);
}

// The largest grid whose blocks run at the same time; 0 or a cudaError_t.
WAYWISER_NVSHMEM_HOST int nvshmemx_collective_launch_query_gridsize(const void* func, dim3 block_dims, void** /*args*/,
                                                                    std::size_t shared_mem, int* gridsize) {
  int of_each = 0, processors = 0;
  const auto threads = static_cast<int>(block_dims.x * block_dims.y * block_dims.z);
  cudaError_t error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, func, threads, shared_mem);
  if (error == cudaSuccess)
    error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, waywiser::nvshmem::device_here());
  if (error == cudaSuccess) *gridsize = of_each * processors;
  return error;
}
// A launch whose blocks run at the same time; a grid of 0 blocks: as many as fit.
WAYWISER_NVSHMEM_HOST int nvshmemx_collective_launch(const void* func, dim3 grid_dims, dim3 block_dims, void** args,
                                                     std::size_t shared_mem, cudaStream_t stream) {
  waywiser::nvshmem::open(waywiser::nvshmem::device_here());
  if (grid_dims.x == 0) {
    int blocks = 0;
    if (const int error = nvshmemx_collective_launch_query_gridsize(func, block_dims, args, shared_mem, &blocks))
      return error;
    grid_dims = dim3(static_cast<unsigned>(blocks), 1, 1);
  }
  return cudaLaunchCooperativeKernel(func, grid_dims, block_dims, args, shared_mem, stream);
}
