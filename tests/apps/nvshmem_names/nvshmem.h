#pragma once

// Stands for NVSHMEM's header where it is not installed: the names of waywiser/nvshmem.h, and those of the start, which
// only NVSHMEM has. For compilation alone.
#include <waywiser/nvshmem.h>

struct nvshmemx_uniqueid_t {
  int version;
  char internal[124];
};
struct nvshmemx_init_attr_t {
  int version;
};
#define NVSHMEMX_UNIQUEID_INITIALIZER \
  {                                   \
    1, {}                             \
  }
#define NVSHMEMX_INIT_ATTR_INITIALIZER {1}
inline constexpr unsigned int NVSHMEMX_INIT_WITH_UNIQUEID = 8;

int nvshmemx_get_uniqueid(nvshmemx_uniqueid_t* id);
int nvshmemx_set_attr_uniqueid_args(int rank, int ranks, nvshmemx_uniqueid_t* id, nvshmemx_init_attr_t* attributes);
int nvshmemx_init_attr(unsigned int flags, nvshmemx_init_attr_t* attributes);
