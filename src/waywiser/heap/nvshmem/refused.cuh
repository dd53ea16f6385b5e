#pragma once

#include "waywiser/heap/nvshmem/here.cuh"

// What is not in scope: a program that calls it does not compile, and the compiler names it.

#define WAYWISER_NVSHMEM_REFUSED(CALL) \
  template <typename... Arguments>     \
  void CALL(Arguments&&...) = delete;

// Other ways to start, and queries.
WAYWISER_NVSHMEM_REFUSED(nvshmem_init_thread)
WAYWISER_NVSHMEM_REFUSED(nvshmem_query_thread)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_init_attr)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_init_status)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_hostlib_init_attr)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_hostlib_finalize)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_get_uniqueid)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_set_attr_uniqueid_args)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_cumodule_init)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_cumodule_finalize)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_culibrary_init)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_culibrary_finalize)
WAYWISER_NVSHMEM_REFUSED(nvshmem_info_get_version)
WAYWISER_NVSHMEM_REFUSED(nvshmem_info_get_name)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_vendor_get_version_info)
// Memory of others, multicast.
WAYWISER_NVSHMEM_REFUSED(nvshmemx_buffer_register)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_buffer_unregister)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_buffer_unregister_all)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_buffer_register_symmetric)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_buffer_unregister_symmetric)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_mc_ptr)
// Teams by other means, queue pairs.
WAYWISER_NVSHMEM_REFUSED(nvshmem_team_get_config)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_team_init)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_team_get_uniqueid)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_qp_create)
// Of each type: calls of the host and of streams for single or strided elements; reductions that scatter.
#define WAYWISER_NVSHMEM_REFUSED_OF_TYPE(NAME, TYPE)           \
  WAYWISER_NVSHMEM_REFUSED(nvshmemx_##NAME##_p_on_stream)      \
  WAYWISER_NVSHMEM_REFUSED(nvshmemx_##NAME##_g_on_stream)      \
  WAYWISER_NVSHMEM_REFUSED(nvshmemx_##NAME##_iput_on_stream)   \
  WAYWISER_NVSHMEM_REFUSED(nvshmemx_##NAME##_iget_on_stream)   \
  WAYWISER_NVSHMEM_REFUSED(nvshmem_##NAME##_sum_reducescatter) \
  WAYWISER_NVSHMEM_REFUSED(nvshmem_##NAME##_min_reducescatter) \
  WAYWISER_NVSHMEM_REFUSED(nvshmem_##NAME##_max_reducescatter) \
  WAYWISER_NVSHMEM_REFUSED(nvshmemx_##NAME##_sum_reducescatter_on_stream)
WAYWISER_NVSHMEM_TYPES(WAYWISER_NVSHMEM_REFUSED_OF_TYPE)
// Waits on a stream for other words than those of 64 bits without a sign.
WAYWISER_NVSHMEM_REFUSED(nvshmemx_int_wait_until_on_stream)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_long_wait_until_on_stream)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_longlong_wait_until_on_stream)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_uint_wait_until_on_stream)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_int32_wait_until_on_stream)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_int64_wait_until_on_stream)
WAYWISER_NVSHMEM_REFUSED(nvshmemx_uint32_wait_until_on_stream)
