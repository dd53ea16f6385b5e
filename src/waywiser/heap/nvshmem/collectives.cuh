#pragma once

#include "waywiser/heap/nvshmem/here.cuh"

// Barriers and collectives of teams; in a kernel one thread, warp or block of each member calls them. They return 0; in
// a kernel not 0 if there is no such team.

namespace waywiser::nvshmem {

using one_sided::TeamOp;

// The type of an element as DataType names it.
template <typename T>
constexpr DataType data_type_of() {
  constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  constexpr DataType with_sign[] = {DataType::int8, DataType::int16, DataType::int32, DataType::int64};
  constexpr DataType without[] = {DataType::uint8, DataType::uint16, DataType::uint32, DataType::uint64};
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<T, __half>) return DataType::float16;
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return DataType::bfloat16;
#endif
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DataType::float32 : DataType::float64;
  return std::is_signed_v<T> ? with_sign[size] : without[size];
}

template <Scope scope>
WAYWISER_NVSHMEM_BOTH int barrier_here(int team) {
#if defined(__CUDA_ARCH__)
  return with_team<scope>(team, [](const auto& of) { of.barrier(); });
#else
  return barrier(team, On());
#endif
}
template <Scope scope>
WAYWISER_NVSHMEM_BOTH int sync_here(int team) {
#if defined(__CUDA_ARCH__)
  return with_team<scope>(team, [](const auto& of) { of.sync(); });
#else
  return barrier(team, On());
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH int broadcast_here(int team, T* to, const T* from, std::size_t count, int root) {
#if defined(__CUDA_ARCH__)
  return with_team<scope>(team, [&](const auto& of) { of.broadcast(to, from, count, root); });
#else
  return broadcast(team, to, from, count * sizeof(T), root, On());
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH int all_gather_here(int team, T* to, const T* from, std::size_t count) {
#if defined(__CUDA_ARCH__)
  return with_team<scope>(team, [&](const auto& of) { of.all_gather(to, from, count); });
#else
  return all_gather(team, to, from, count * sizeof(T), On());
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH int all_to_all_here(int team, T* to, const T* from, std::size_t count) {
#if defined(__CUDA_ARCH__)
  return with_team<scope>(team, [&](const auto& of) { of.all_to_all(to, from, count); });
#else
  return all_to_all(team, to, from, count * sizeof(T), On());
#endif
}
template <Scope scope, typename T>
WAYWISER_NVSHMEM_BOTH int reduce_here(int team, T* to, const T* from, std::size_t count, TeamOp op) {
#if defined(__CUDA_ARCH__)
  using Element = std::conditional_t<std::is_same_v<T, __half>, Float16,
                                     std::conditional_t<std::is_same_v<T, __nv_bfloat16>, Bfloat16, T>>;
  return with_team<scope>(team, [&](const auto& of) {
    of.reduce(reinterpret_cast<Element*>(to), reinterpret_cast<const Element*>(from), count, op);
  });
#else
  return reduce(team, to, from, count, data_type_of<T>(), op, On());
#endif
}

}  // namespace waywiser::nvshmem

// Of calls that end alike: PREFIX##NAME is for host and thread, the others for a stream, a warp and a block.
#define WAYWISER_NVSHMEM_SCOPES(NAME, CALL, PARAMETERS, ARGUMENTS) \
  WAYWISER_NVSHMEM_BOTH int nvshmem_##NAME PARAMETERS {            \
    using namespace waywiser::nvshmem;                             \
    return CALL<Scope::thread> ARGUMENTS;                          \
  }                                                                \
  WAYWISER_NVSHMEM_SCOPE(NAME, CALL, PARAMETERS, ARGUMENTS, warp)  \
  WAYWISER_NVSHMEM_SCOPE(NAME, CALL, PARAMETERS, ARGUMENTS, block)
#if defined(__CUDACC__)
#define WAYWISER_NVSHMEM_SCOPE(NAME, CALL, PARAMETERS, ARGUMENTS, SCOPE) \
  WAYWISER_NVSHMEM_DEVICE int nvshmemx_##NAME##_##SCOPE PARAMETERS {     \
    using namespace waywiser::nvshmem;                                   \
    return CALL<Scope::SCOPE> ARGUMENTS;                                 \
  }
#else
#define WAYWISER_NVSHMEM_SCOPE(NAME, CALL, PARAMETERS, ARGUMENTS, SCOPE)
#endif
#define WAYWISER_NVSHMEM_MEETING(NAME, CALL)                                                        \
  WAYWISER_NVSHMEM_SCOPES(NAME, CALL, (nvshmem_team_t team), (team))                                \
  WAYWISER_NVSHMEM_BOTH void nvshmem_##NAME##_all() { nvshmem_##NAME(NVSHMEM_TEAM_WORLD); }         \
  WAYWISER_NVSHMEM_MEETING_OF_ALL(NAME, warp)                                                       \
  WAYWISER_NVSHMEM_MEETING_OF_ALL(NAME, block)                                                      \
  WAYWISER_NVSHMEM_HOST int nvshmemx_##NAME##_on_stream(nvshmem_team_t team, cudaStream_t stream) { \
    return waywiser::nvshmem::barrier(team, waywiser::nvshmem::on(stream));                         \
  }                                                                                                 \
  WAYWISER_NVSHMEM_HOST void nvshmemx_##NAME##_all_on_stream(cudaStream_t stream) {                 \
    waywiser::nvshmem::barrier(NVSHMEM_TEAM_WORLD, waywiser::nvshmem::on(stream));                  \
  }
#if defined(__CUDACC__)
#define WAYWISER_NVSHMEM_MEETING_OF_ALL(NAME, SCOPE) \
  WAYWISER_NVSHMEM_DEVICE void nvshmemx_##NAME##_all_##SCOPE() { nvshmemx_##NAME##_##SCOPE(NVSHMEM_TEAM_WORLD); }
#else
#define WAYWISER_NVSHMEM_MEETING_OF_ALL(NAME, SCOPE)
#endif

WAYWISER_NVSHMEM_MEETING(barrier, barrier_here)
WAYWISER_NVSHMEM_MEETING(sync, sync_here)
WAYWISER_NVSHMEM_BOTH int nvshmem_team_sync(nvshmem_team_t team) { return nvshmem_sync(team); }
#if defined(__CUDACC__)
WAYWISER_NVSHMEM_DEVICE int nvshmemx_team_sync_warp(nvshmem_team_t team) { return nvshmemx_sync_warp(team); }
WAYWISER_NVSHMEM_DEVICE int nvshmemx_team_sync_block(nvshmem_team_t team) { return nvshmemx_sync_block(team); }
#endif
WAYWISER_NVSHMEM_HOST int nvshmemx_team_sync_on_stream(nvshmem_team_t team, cudaStream_t stream) {
  return nvshmemx_sync_on_stream(team, stream);
}

// FIRST and LAST as of the transfers: "float_" and "", "" and "mem".
#define WAYWISER_NVSHMEM_EXCHANGES(FIRST, LAST, TYPE, ELEMENT)                                                         \
  WAYWISER_NVSHMEM_SCOPES(FIRST##broadcast##LAST, broadcast_here,                                                      \
                          (nvshmem_team_t team, TYPE * dest, const TYPE* source, std::size_t nelems, int pe_root),     \
                          (team, static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems, pe_root))   \
  WAYWISER_NVSHMEM_SCOPES(FIRST##fcollect##LAST, all_gather_here,                                                      \
                          (nvshmem_team_t team, TYPE * dest, const TYPE* source, std::size_t nelems),                  \
                          (team, static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems))            \
  WAYWISER_NVSHMEM_SCOPES(FIRST##alltoall##LAST, all_to_all_here,                                                      \
                          (nvshmem_team_t team, TYPE * dest, const TYPE* source, std::size_t nelems),                  \
                          (team, static_cast<ELEMENT*>(dest), static_cast<const ELEMENT*>(source), nelems))            \
  WAYWISER_NVSHMEM_HOST int nvshmemx_##FIRST##broadcast##LAST##_on_stream(                                             \
      nvshmem_team_t team, TYPE* dest, const TYPE* source, std::size_t nelems, int pe_root, cudaStream_t stream) {     \
    return waywiser::nvshmem::broadcast(team, dest, source, nelems * sizeof(ELEMENT), pe_root,                         \
                                        waywiser::nvshmem::on(stream));                                                \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_HOST int nvshmemx_##FIRST##fcollect##LAST##_on_stream(                                              \
      nvshmem_team_t team, TYPE* dest, const TYPE* source, std::size_t nelems, cudaStream_t stream) {                  \
    return waywiser::nvshmem::all_gather(team, dest, source, nelems * sizeof(ELEMENT), waywiser::nvshmem::on(stream)); \
  }                                                                                                                    \
  WAYWISER_NVSHMEM_HOST int nvshmemx_##FIRST##alltoall##LAST##_on_stream(                                              \
      nvshmem_team_t team, TYPE* dest, const TYPE* source, std::size_t nelems, cudaStream_t stream) {                  \
    return waywiser::nvshmem::all_to_all(team, dest, source, nelems * sizeof(ELEMENT), waywiser::nvshmem::on(stream)); \
  }
#define WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, OP, HOW)                                                   \
  WAYWISER_NVSHMEM_SCOPES(NAME##_##OP##_reduce, reduce_here,                                           \
                          (nvshmem_team_t team, TYPE * dest, const TYPE* source, std::size_t nreduce), \
                          (team, dest, source, nreduce, TeamOp::HOW))                                  \
  WAYWISER_NVSHMEM_HOST int nvshmemx_##NAME##_##OP##_reduce_on_stream(                                 \
      nvshmem_team_t team, TYPE* dest, const TYPE* source, std::size_t nreduce, cudaStream_t stream) { \
    using namespace waywiser::nvshmem;                                                                 \
    return reduce(team, dest, source, nreduce, data_type_of<TYPE>(), TeamOp::HOW, on(stream));         \
  }

#define WAYWISER_NVSHMEM_TYPED_COLLECTIVES(NAME, TYPE) \
  WAYWISER_NVSHMEM_EXCHANGES(NAME##_, , TYPE, TYPE)    \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, sum, sum)        \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, prod, product)   \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, min, minimum)    \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, max, maximum)
#define WAYWISER_NVSHMEM_BIT_REDUCTIONS(NAME, TYPE) \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, and, bit_and) \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, or, bit_or)   \
  WAYWISER_NVSHMEM_REDUCE(NAME, TYPE, xor, bit_xor)

WAYWISER_NVSHMEM_TYPES(WAYWISER_NVSHMEM_TYPED_COLLECTIVES)
WAYWISER_NVSHMEM_WHOLE_TYPES(WAYWISER_NVSHMEM_BIT_REDUCTIONS)
WAYWISER_NVSHMEM_EXCHANGES(, mem, void, std::byte)
