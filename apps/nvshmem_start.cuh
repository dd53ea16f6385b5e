#pragma once

#include <nvshmem.h>
#include <nvshmemx.h>

#include <cstdlib>
#include <span>
#include <string>
#include <waywiser/group/group.hpp>

namespace apps {

// Starts NVSHMEM on the present GPU, once in a process, with a rank for each of the group. Collective. Returns why it
// cannot; NVSHMEM ends the process where it fails later.
inline std::string start_nvshmem(waywiser::Group& group) {
  static bool started = false;
  if (started) return "";
  setenv("NVSHMEM_DISABLE_NVLS", "1", 1);  // no multicast
  setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
  setenv("NVSHMEM_SYMMETRIC_SIZE", "4G", 0);  // if it cannot grow
  nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
  if (group.rank() == 0 && nvshmemx_get_uniqueid(&id) != 0) id.version = -1;  // which all ranks see
  group.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0);
  nvshmemx_init_attr_t attributes = NVSHMEMX_INIT_ATTR_INITIALIZER;
  if (id.version == -1 || nvshmemx_set_attr_uniqueid_args(group.rank(), group.size(), &id, &attributes) != 0)
    return "NVSHMEM's ranks do not meet";
  nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attributes);
  started = true;
  return "";
}

}  // namespace apps
